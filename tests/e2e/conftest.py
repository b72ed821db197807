import pytest


@pytest.fixture(scope="session")
def scene(server):
    from scene import Scene

    made = Scene(server.url, server.kafka)
    yield made
    made.close()


@pytest.fixture(scope="session")
def records(scene, server):
    from single_fields import Records

    made = Records(scene, server.registry)
    yield made
    made.close()
