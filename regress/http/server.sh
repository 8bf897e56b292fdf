#!/bin/sh
# server.sh: the HTTP server of apid; see server.py and echo.c.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
make -s -C "$WB_BUILD/regress" http_echo || exit 1
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$top/regress/http/server.py" \
    "$WB_BUILD/regress/http_echo" "$top/regress/http/corpus"
