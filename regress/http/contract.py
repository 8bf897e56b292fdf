#!/usr/bin/python3
"""contract.py OPENAPI: holds exchanges against the served document.

Reads lines of JSON on standard input, {"method", "target", "status", "type",
"body", "requestBody"}: body and requestBody are texts, type is the answer's
Content-Type.  Prints a line for each fault; exits 1 when there was one.
"""
import json
import re
import sys
from urllib.parse import parse_qsl

import jsonschema


FRAMES = "application/vnd.workbox.output"


def frames(data):
    """Whole frames as (kind, three bytes, number, what follows); the rest."""
    out, at = [], 0
    while len(data) - at >= 16:
        n = int.from_bytes(data[at + 4:at + 8], "big")
        if len(data) - at - 16 < n:
            break
        out.append((data[at], bytes(data[at + 1:at + 4]),
                    int.from_bytes(data[at + 8:at + 16], "big"),
                    bytes(data[at + 16:at + 16 + n])))
        at += 16 + n
    return out, data[at:]


def metrics(body):
    """Faults of a body in the text format of Prometheus."""
    out, family, kind, seen, last = [], None, None, set(), 0
    if not body.endswith("\n"):
        out.append("the last line has no end")
    for line in body.split("\n")[:-1]:
        m = re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line)
        if m and m[1] == "HELP":
            if m[2] in seen:
                out.append("%s: told twice" % m[2])
            family, kind = m[2], None
            seen.add(family)
            continue
        if m:
            kind, last = m[3], 0
            if m[2] != family or kind not in ("counter", "gauge", "histogram"):
                out.append("not the type of %s: %s" % (family, line))
            elif (kind == "counter") != family.endswith("_total"):
                out.append("%s: a name of no %s" % (family, kind))
            continue
        m = re.fullmatch(r'([a-z_]+)((?:\{(?:[a-z]+="[^"\\]*",?)+\})?) (\S+)',
                         line)
        if not m:
            out.append("no sample: %s" % line)
            continue
        name = m[1]
        if kind == "histogram":
            name = re.sub("_(bucket|sum|count)$", "", name)
        if name != family or kind is None:
            out.append("%s within %s" % (name, family))
        if line[:-len(m[3])] in seen:
            out.append("twice: %s" % line)
        seen.add(line[:-len(m[3])])
        value = float(m[3])
        if not value >= 0:
            out.append("less than nothing: %s" % line)
        if m[1] == name + "_bucket":
            if value < last:
                out.append("less than in the bucket before: %s" % line)
            last = value
        elif m[1] == name + "_count" and value != last:
            out.append("not what is in the last bucket: %s" % line)
    return out


class Contract:
    def __init__(self, doc):
        self.doc = doc
        self.cache = {}
        self.paths = []
        for template, item in doc["paths"].items():
            pattern = re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(template))
            self.paths.append((re.compile(pattern + "$"), template, item))

    def faults(self, schema, value):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.cache:
            self.cache[key] = jsonschema.Draft202012Validator(
                dict(schema, components=self.doc["components"]))
        return ["%s: %s" % ("/".join(map(str, e.absolute_path)),
                            e.message[:300])
                for e in self.cache[key].iter_errors(value)]

    def operation(self, method, target):
        path = target.split("?")[0]
        for pattern, template, item in self.paths:
            if pattern.match(path):
                name = "get" if method == "HEAD" else method.lower()
                return item.get(name), template
        return None, None

    def text(self, schema, text, what):
        try:
            return ["%s: %s" % (what, f)
                    for f in self.faults(schema, json.loads(text))]
        except ValueError as e:
            return ["%s: not JSON: %s: %.200r" % (what, e, text)]

    def answer_schema(self, method, target, status, ctype):
        """-> schema of one value (None: no body), or an error text"""
        op, template = self.operation(method, target)
        problem = {"$ref": "#/components/schemas/Problem"}
        media = ctype.split(";")[0].strip() if ctype else None
        if op is None:
            if status < 400 or media != "application/problem+json":
                return "%d %s of a route that is not there" % (status, media)
            return problem
        entry = op["responses"].get(str(status))
        if entry is None:
            if status < 400:
                return "status %d is not in the document" % status
            entry = op["responses"]["default"]
        content = entry.get("content")
        if content is None:
            return None if media is None else "type %s with no content" % media
        if media is None or media not in content:
            return "type %s, not one of %s" % (media, ", ".join(content))
        return content[media].get("schema", {})

    def check_answer(self, method, target, status, ctype, body):
        schema = self.answer_schema(method, target, status, ctype)
        if isinstance(schema, str):
            return [schema]
        if method == "HEAD" or schema is None:
            return ["a body where there is none"] if body else []
        if ctype.startswith("application/x-ndjson"):
            lines = body.split("\n")
            out = [] if lines[-1] == "" else ["the last line has no end"]
            for line in lines[:-1]:
                out += self.text(schema, line, "line")
            return out
        if ctype == FRAMES:
            return self.frames(method, target, status, body)
        if "version=0.0.4" in ctype:
            return metrics(body)
        return self.text(schema, body, "answer")

    def frames(self, method, target, status, body):
        """Of what is no bytes of a command, the schema is that of a line."""
        schema = self.answer_schema(method, target, status,
                                    "application/x-ndjson")
        last, out = 0, []
        whole, rest = frames(body.encode("utf-8", "surrogateescape"))
        for kind, zero, seq, data in whole:
            if kind == 0 and seq == 0:
                out += self.text(schema, data.decode(), "frame")
            elif kind not in (1, 2) or seq <= last or not data:
                out.append("frame %d of kind %d behind %d" % (seq, kind, last))
            if zero != b"\0\0\0":
                out.append("a frame with other bytes in its head")
            last = max(last, seq)
        return out + (["the last frame is not whole"] if rest else [])

    def check_request(self, method, target, body):
        """What was accepted must be what the document describes."""
        op, template = self.operation(method, target)
        if op is None:
            return []
        out = []
        params = {p["name"]: p["schema"] for p in op.get("parameters", ())}
        for name, value in parse_qsl(target.partition("?")[2],
                                     keep_blank_values=True):
            if name not in params:
                out.append("parameter %s is not in the document" % name)
            elif params[name]["type"] == "integer":
                out += ["parameter %s: %s" % (name, f) for f in
                        self.faults(params[name], int(value))]
        content = op.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            out += self.text(content["application/json"]["schema"], body,
                             "request")
        elif not content and body:
            out.append("a request body where the document has none")
        return out

    def check(self, x):
        out = self.check_answer(x["method"], x["target"], x["status"],
                                x.get("type"), x.get("body", ""))
        if x["status"] < 300:
            out += self.check_request(x["method"], x["target"],
                                      x.get("requestBody", ""))
        return out


def main():
    contract = Contract(json.load(open(sys.argv[1])))
    bad = 0
    for line in sys.stdin:
        x = json.loads(line)
        for fault in contract.check(x):
            print("%s %s: %d: %s" % (x["method"], x["target"], x["status"],
                                     fault))
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
