#!/usr/bin/python3
"""openapi.py ECHO DOCUMENT: the document that http_echo serves goes to
DOCUMENT; its schemas are JSON Schema; what the server takes is what they
say (schema.c against python3-jsonschema); contract.py sees what is wrong."""
import copy
import json
import random
import sys

import jsonschema

import server as rig
from contract import Contract
from server import JSON, KEY, Server, answers, check, request

STRINGS = ["", "a", "A", "demo", "a" * 63, "a" * 64, "-a", "a-b.c_d", "none",
           "egress", "host", "/tmp", "tmp", "\u00e4", "a\u0001b", "a b",
           "x" * 1024, "x" * 1025, "TERM", "SIGKILL", "RTMIN+1", "\U0001f600"]
VALUES = [None, True, False, 0, 1, -1, 64, 65, 127, 128, 400, 4194304, 4194305,
          16777215, 16777216, 2147483648, 9223372036854775807, 0.5, 0.001,
          0.009, 1024, 1024.5, 1e-9, 1e300, [], {}, [1], ["a"], {"a": "b"},
          {"A": "b"}, {"A": 1}, {"": ""}] + STRINGS
GOOD = {
    ("/v1/sandboxes", "SandboxSpec"): {
        "name": "demo", "rootfs": "minimal", "network": "none",
        "limits": {"memoryBytes": 1 << 30, "cpus": 0.5, "pids": 400},
        "labels": {"a/b.c": "d e"}, "env": {"A_1": "b\n"}},
    ("/v1/sandboxes/a/exec", "SessionSpec"): {
        "argv": ["sh", "-c", "true"], "name": "n", "env": {"A": ""},
        "cwd": "/tmp", "stdin": "x\u00e4", "stdinOpen": True,
        "timeoutSeconds": 1.5},
    ("/v1/sandboxes/a/sessions/b/signal", "SignalSpec"): {"signal": 15},
}


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, list) else ()
    for k, v in items:
        yield from places(v, path + (k,))


def mutate(rnd, value):
    value = copy.deepcopy(value)
    path = rnd.choice(list(places(value)))
    if not path:
        if rnd.random() < 0.2:
            return rnd.choice(VALUES)
        path = (rnd.choice(list(value)),)
    at = value
    for k in path[:-1]:
        at = at[k]
    how = rnd.randrange(4)
    if how == 0:
        del at[path[-1]]
    elif how == 1 and isinstance(at, dict):
        at[rnd.choice(STRINGS)] = rnd.choice(VALUES)
    else:
        at[path[-1]] = rnd.choice(VALUES)
    return value


def test_schemas(doc):
    bad = []
    for name, schema in doc["components"]["schemas"].items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as e:
            bad.append((name, e.message))
    check("every schema is one", not bad, bad)
    refs = set(json.dumps(doc).split("#/components/schemas/")[1:])
    names = {r.split('"')[0] for r in refs}
    check("every reference leads somewhere, every schema is used",
          names == set(doc["components"]["schemas"]),
          names ^ set(doc["components"]["schemas"]))


def test_agree(s, doc):
    contract, rnd = Contract(doc), random.Random(1)
    taken = refused = 0
    wrong = []
    with s.connect() as c:
        f = c.makefile("rwb")
        for i in range(4000):
            (path, name), good = rnd.choice(list(GOOD.items()))
            value = good
            for _ in range(rnd.choice([1, 1, 2])):
                value = mutate(rnd, value) if isinstance(value, dict) and \
                    value else value
            want = not contract.faults(
                {"$ref": "#/components/schemas/" + name}, value)
            f.write(request("POST", path, KEY, JSON,
                            body=json.dumps(value).encode()))
            f.flush()
            status = int(f.readline().split()[1])
            n = 0
            while True:
                line = f.readline()
                if line.lower().startswith(b"content-length:"):
                    n = int(line.split()[1])
                if line == b"\r\n":
                    break
            body = f.read(n)
            taken, refused = taken + want, refused + (not want)
            if (status < 300) != want or status not in (200, 204, 400):
                wrong.append((name, value, status, body))
    check("4,000 bodies: %d taken, %d refused, as the schemas say"
          % (taken, refused), not wrong and taken > 300 and refused > 300,
          *wrong[:5])


def test_contract(doc):
    c = Contract(doc)
    box = {"id": "01K8" + "0" * 22, "name": "a", "state": "READY",
           "health": "HEALTHY", "network": "none", "rootfs": "minimal",
           "limits": {"memoryBytes": 1, "cpus": 0.5, "pids": 1},
           "labels": {}, "createdAt": "2026-01-02T03:04:05.678Z"}
    schema = doc["components"]["schemas"]["Sandbox"]
    for k in schema["required"]:
        if k not in box:
            p = schema["properties"][k]
            types = [q.get("type", ()) for q in p.get("oneOf", [p])]
            box[k] = box["createdAt"] if k.endswith("At") else \
                None if any("null" in t for t in types) else "x"
    problem = {"type": "about:blank", "title": "x", "status": 404,
               "code": "not-found", "detail": "x", "requestId": "x"}

    def x(target="/v1/sandboxes/a", status=200, type="application/json",
          body=None, method="GET", **more):
        return c.check(dict(more, method=method, target=target, status=status,
                            type=type, body=json.dumps(
                                box if body is None else body)))
    pj = "application/problem+json"
    for text, faults in [
            ("a sandbox", x()),
            ("a problem", x(status=404, type=pj, body=problem)),
            ("a problem of no row", x(status=431, type=pj, body=problem)),
            ("a path of no route", x("/x", 404, pj, problem)),
            ("a method of no route", x(method="PUT", status=405, type=pj,
                                       body=problem))]:
        check("contract: %s is good" % text, faults == [], faults)
    for text, faults in [
            ("a member too many", x(body=dict(box, more=1))),
            ("a member too few", x(body={k: v for k, v in box.items()
                                         if k != "state"})),
            ("another type", x(type="text/html")),
            ("no type", x(type=None)),
            ("a status of no row", x(status=299)),
            ("an unknown state", x(body=dict(box, state="ready"))),
            ("an answer of no route", x("/v1/x")),
            ("a bare problem", x(status=404, type=pj, body={"error": "x"})),
            ("a problem as JSON", x(status=404, body=problem)),
            ("a parameter that was taken", x("/v1/sandboxes/a?x=1")),
            ("a body that was taken", x(requestBody="x")),
            ("a line that is not whole", c.check(
                {"method": "GET", "target": "/v1/events", "status": 200,
                 "type": "application/x-ndjson", "body": "{"}))]:
        check("contract: %s is a fault" % text, faults != [], faults)


def main():
    s = Server()
    raw = s.talk(request("GET", "/v1/openapi.json", close=True))
    doc = answers(raw)[0][2]
    json.dump(doc, open(sys.argv[2], "w"))
    check("openapi 3.1.0", doc["openapi"] == "3.1.0")
    test_schemas(doc)
    test_contract(doc)
    test_agree(s, doc)
    rig.end(s)
    return rig.failed > 0


if __name__ == "__main__":
    sys.exit(main())
