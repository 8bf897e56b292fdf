#!/bin/sh
# tls.sh: TLS of the HTTP server of apid; see tls.py and echo.c.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
make -s -C "$WB_BUILD/regress" http_echo || exit 1
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$top/regress/http/tls.py" \
    "$WB_BUILD/regress/http_echo" "$top/regress/http/corpus"
