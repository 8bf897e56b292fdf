#!/usr/bin/env python3
"""Reads `workbox events export' and proves that the record is whole.

workbox-events(7): each line names the hash of the line before, which is
SHA-256 of a zero byte and the line; numbers count from 1; times never
decrease.  The bytes are hashed as they come, nothing is encoded again.
"""
import hashlib
import json
import sys

KEYS = ["seq", "time", "type", "tenant", "actor", "sandboxId", "sessionId",
        "requestId", "outcome", "reason", "data", "prev"]
prev, seq, time = "0" * 64, 0, ""

for raw in sys.stdin.buffer:
    seq += 1
    line = raw.removesuffix(b"\n")
    try:
        record = json.loads(line)
    except ValueError:
        sys.exit(f"record {seq}: no JSON")
    if not isinstance(record, dict) or list(record) != KEYS:
        sys.exit(f"record {seq}: keys")
    for what, good in [("newline", raw.endswith(b"\n")),
                       ("seq", record["seq"] == seq),
                       ("time", str(record["time"]) >= time),
                       ("prev", record["prev"] == prev)]:
        if not good:
            sys.exit(f"record {seq}: {what}")
    time = record["time"]
    prev = hashlib.sha256(b"\0" + line).hexdigest()

print(f"{seq} records, head {prev}")
