import pytest


@pytest.fixture(scope="session")
def scene(server):
    from scene import Scene

    made = Scene(server.url, server.kafka)
    yield made
    made.close()
