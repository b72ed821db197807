"""ksqlDB's client for Java, call by call: what each method sends, and how it reads the answer.

The package itself needs a JVM and a repository that is not everywhere. What it does with an answer
is told by its source, and is repeated here: which members it wants, how it cuts an answer into
lines, and what becomes of a call when a line is not what it expects.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field

AGENT = {"user-agent": "ksqlDB Java Client v8.0.0"}
STREAMED = "application/vnd.ksql.v1+json"
CONTINUATION = "request.ksql.query.push.continuation.token"


class ClientError(Exception):
    """What a call completes with exceptionally."""


class Hangs(Exception):
    """The call never completes: the client did not notice that the answer has ended."""


class Lines:
    """Vert.x's parser of lines. What the handler raises is only logged, but leaves the buffer as it
    was, and an exception at the end keeps the end from being noticed."""

    def __init__(self, handle):
        self.handle = handle
        self.buffer, self.start, self.position = b"", 0, 0
        self.logged = []
        self.ended = False

    def feed(self, chunk):
        self.buffer += chunk
        self._parse(last=False)

    def end(self):
        self._parse(last=True)

    def _parse(self, last):
        try:
            while True:
                cut = self.buffer.find(b"\n", self.position)
                self.position = cut + 1 if cut >= 0 else len(self.buffer)
                if cut < 0:
                    if not last or not self.buffer:
                        break
                    cut = len(self.buffer)
                line, self.start = self.buffer[self.start : cut], self.position
                self.handle(line)
                if last:
                    break
        except Exception as error:
            self.logged.append(error)
            return
        self.buffer = self.buffer[self.start :]
        self.position -= self.start
        self.start = 0
        self.ended = last


def element(line):
    """A line of a streamed answer without the brackets and commas around its object."""
    start, end = 0, len(line) - 1
    if line[0] == ord("["):  # which a blank line has not
        start = 1
    if line[end] == ord("]"):
        end -= 1
    if end > 0 and line[end] == ord(","):
        end -= 1
    return line[start : end + 1].decode()


def columns_of(schema):
    """Names and types of the columns, from the schema of a header."""
    parts, depth = [""], 0
    for character in schema:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    cleaned = [part.replace(" KEY", "").replace("`", "").strip() for part in parts]
    return [tuple(part.split(" ", 1)) for part in cleaned]


@dataclass
class Result:
    """What a query has given so far. `logged`: what the client could not take, and logged."""

    query_id: str | None = None
    columns: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    error: str | None = None
    logged: list = field(default_factory=list)


def json_of(row):
    """A row as the client writes it: bytes in the base64 of URLs, without padding."""
    return {
        k: urlsafe_b64encode(v).decode().rstrip("=") if isinstance(v, bytes) else v
        for k, v in row.items()
    }


class JavaClient:
    """`http` should speak HTTP/2, as the client always does."""

    def __init__(self, http):
        self.http = http
        self.variables = {}
        self.request_properties, self.continuation = {}, ""

    def _send(self, method, path, *lines, **headers):
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return self.http.stream(method, path, content=content, headers={**AGENT, **headers})

    def _whole(self, path, body, method="POST"):
        with self._send(method, path, body) as answer:
            answer.read()
        if answer.status_code != 200:
            self._refuse(answer)
        return answer

    @staticmethod
    def _refuse(answer):
        told = json.loads(answer.read())
        raise ClientError(
            f"Received {answer.status_code} response from server: {told.get('message')}. "
            f"Error code: {told.get('error_code')}"
        )

    def _entity(self, sql, **more):
        entities = self._whole("/ksql", {"ksql": sql, **more}).json()
        if len(entities) != 1:
            raise ClientError(f"Unexpected number of entities in server response: {len(entities)}")
        return entities[0]

    def _with_variables(self, sql):
        return self._entity(sql, sessionVariables=self.variables)

    # -------------------------------------------------------------------- queries

    def stream_query(self, sql, properties=None, most=None):
        """The rows of a query, at most so many; an error of the query is kept beside them."""
        properties = dict(properties or {})
        if properties.get("ksql.query.push.v2.enabled") is True:
            properties["ksql.query.push.v2.continuation.tokens.enabled"] = True
            if self.continuation:
                self.request_properties[CONTINUATION] = self.continuation
        return self._query(sql, properties, self._streamed, most)

    def execute_query(self, sql, properties=None):
        """All rows of a query that ends."""
        return self._query(sql, properties or {}, self._batched, None)

    def _query(self, sql, properties, take, most):
        body = {
            "sql": sql,
            "properties": properties,
            "sessionVariables": self.variables,
            "requestProperties": self.request_properties,
        }
        result = Result()

        def handle(line):
            text = element(line)
            if result.query_id is None:
                head = json.loads(text)["header"]
                result.query_id, result.columns = head["queryId"], columns_of(head["schema"])
            elif text:
                take(result, json.loads(text))

        lines = Lines(handle)
        result.logged = lines.logged
        with self._send("POST", "/query-stream", body, accept=STREAMED) as answer:
            if answer.status_code != 200:
                self._refuse(answer)
            for chunk in answer.iter_raw():
                lines.feed(chunk)
                if most is not None and len(result.rows) >= most:
                    return result
        lines.end()
        if not lines.ended:
            raise Hangs(lines.logged)
        return result

    def _streamed(self, result, part):
        if "row" in part:
            result.rows.append(part["row"]["columns"])
        elif "continuationToken" in part:
            self.continuation = part["continuationToken"]["continuationToken"]
        elif "errorMessage" in part:
            result.error = part["errorMessage"]["message"]
        elif "finalMessage" not in part:
            raise ClientError(f"Could not decode JSON: {part}")

    @staticmethod
    def _batched(result, part):
        if "row" in part:
            result.rows.append(part["row"]["columns"])
        elif "finalMessage" not in part:
            raise ClientError(f"Could not decode JSON: {part}")

    def terminate_push_query(self, query_id):
        self._whole("/close-query", {"queryId": query_id})

    # -------------------------------------------------------------------- inserts

    def insert_into(self, target, row):
        (status,) = self.stream_inserts(target, row)
        if status["status"] != "ok":
            raise ClientError(
                f"Received error from /inserts-stream. Error code: {status['error_code']}. "
                f"Message: {status['message']}"
            )

    def stream_inserts(self, target, *rows):
        """The acknowledgements. (The client waits for the answer's head before it sends rows.)"""
        found = []
        lines = Lines(lambda line: found.append(json.loads(line)))
        sent = [{"target": target}, *map(json_of, rows)]
        with self._send("POST", "/inserts-stream", *sent) as answer:
            if answer.status_code != 200:
                self._refuse(answer)
            for chunk in answer.iter_raw():
                lines.feed(chunk)
        lines.end()
        if not lines.ended:
            raise Hangs(lines.logged)
        for ack in found:
            if ack["status"] not in ("ok", "error") or not isinstance(ack["seq"], int):
                raise ClientError(f"Unrecognized status response from /inserts-stream: {ack}")
        return found

    # ----------------------------------------------------------------- statements

    def execute_statement(self, sql, properties=None):
        """The id of the query that a statement starts, or None."""
        entity = self._entity(
            sql, streamsProperties=properties or {}, sessionVariables=self.variables
        )
        told = entity.get("message")
        if entity.get("@type") == "warning_entity" and told and told.startswith("Cannot add"):
            return None
        if entity.get("commandId") is None or entity.get("commandStatus") is None:
            raise ClientError(f"Unexpected server response type. Response: {entity}")
        return entity["commandStatus"].get("queryId")

    def list_streams(self):
        return [
            (s["name"], s["topic"], s.get("keyFormat", "KAFKA"), s["valueFormat"], s["isWindowed"])
            for s in self._entity("list streams;")["streams"]
        ]

    def list_tables(self):
        return [
            (t["name"], t["topic"], t.get("keyFormat", "KAFKA"), t["valueFormat"], t["isWindowed"])
            for t in self._entity("list tables;")["tables"]
        ]

    def list_topics(self):
        topics = self._entity("list topics;")["topics"]
        return {t["name"]: [replicas + 0 for replicas in t["replicaInfo"]] for t in topics}

    def list_queries(self):
        return _queries(self._entity("list queries;")["queries"])

    def describe_source(self, name):
        source = self._with_variables(f"describe {name};")["sourceDescription"]
        return {
            "name": source["name"],
            "type": source["type"],
            "fields": [
                (f["name"], f["schema"]["type"], f.get("type") == "KEY") for f in source["fields"]
            ],
            "topic": source["topic"],
            "formats": (source["keyFormat"], source["valueFormat"]),
            "reads": _queries(source["readQueries"]),
            "writes": _queries(source["writeQueries"]),
            "timestamp": source.get("timestamp") or None,
            "window": source.get("windowType") or None,
            "statement": source["statement"],
            "constraints": list(source.get("sourceConstraints", [])),
        }

    def server_info(self):
        info = self._whole("/info", {}, method="GET").json()["KsqlServerInfo"]
        return info["version"], info["kafkaClusterId"], info["ksqlServiceId"]

    def assert_topic(self, name, exists=True, configs=None, seconds=None):
        clause = ",".join(f"{k}={v}" for k, v in (configs or {}).items())
        entity = self._with_variables(
            f"assert{'' if exists else ' not exists'} topic '{name}'"
            f"{f' with ({clause})' if clause else ''}{_timeout(seconds)};"
        )
        if not isinstance(entity["exists"], bool) or entity["topicName"] is None:
            raise ClientError(f"Unexpected server response format. Response: {entity}")

    def assert_schema(self, subject=None, id_=None, exists=True, seconds=None):
        entity = self._with_variables(
            f"assert{'' if exists else ' not exists'} schema"
            f"{f' subject {subject!r}' if subject else ''}{f' id {id_}' if id_ else ''}"
            f"{_timeout(seconds)};"
        )
        if not isinstance(entity["exists"], bool) or not {"subject", "id"} <= set(entity):
            raise ClientError(f"Unexpected server response format. Response: {entity}")

    # ----------------------------------------------------------------- connectors

    def create_connector(self, name, source, properties, if_not_exists=None):
        clause = {None: "", True: "IF NOT EXISTS ", False: " "}[if_not_exists]
        configs = ",".join(f"'{k}'='{v}'" for k, v in properties.items())
        entity = self._with_variables(
            f"CREATE {'SOURCE' if source else 'SINK'} CONNECTOR {clause}{name} WITH ({configs});"
        )
        if entity.get("info") is None and "already exists" not in (entity.get("message") or ""):
            raise ClientError(f"Unexpected server response format. Response: {entity}")

    def drop_connector(self, name, if_exists=False):
        entity = self._with_variables(f"drop connector {'if exists ' if if_exists else ''}{name};")
        told = entity.get("message") or ""
        if entity.get("connectorName") is None and "not exist" not in told:
            raise ClientError(f"Unexpected server response format. Response: {entity}")

    def list_connectors(self):
        return [
            (c["name"], c["type"], c["className"], c["state"])
            for c in self._entity("list connectors;")["connectors"]
        ]

    def describe_connector(self, name):
        entity = self._with_variables(f"describe connector {name};")
        status = entity["status"]
        return (
            status["name"],
            entity["connectorClass"],
            list(entity["sources"]),
            list(entity["topics"]),
            status["type"],
            status["connector"]["state"],
        )

    def request(self, method, path, body=None):
        """A request of any kind, of which the client tells the status and the body."""
        payload = {**(body or {}), "sessionVariables": self.variables}
        with self._send(method, path, payload) as answer:
            return answer.status_code, answer.read()


def _timeout(seconds):
    return "" if seconds is None else f" timeout {seconds} seconds"


def _queries(listed):
    found = []
    for query in listed:
        sinks = {"PERSISTENT": 1, "PUSH": 0}[query["queryType"]]
        if len(query["sinks"]) != sinks or len(query["sinkKafkaTopics"]) != sinks:
            raise ClientError(f"A {query['queryType']} query has {sinks} sinks: {query}")
        found.append((query["id"], query["queryType"], query["queryString"], *query["sinks"]))
    return found
