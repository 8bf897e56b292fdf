#!/bin/sh
# openapi.sh: the served OpenAPI document: redocly finds nothing to say, the
# server takes what its schemas say, and the validator that other tests use
# (watch.py, contract.py) sees faults.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/regress/http
doc=$WB_BUILD/openapi.json
npm=$WB_BUILD/http-npm
page=$top/apid/workbox-api.7
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || { echo "skip: no python3-jsonschema"; exit 77; }
make -s -C "$WB_BUILD/regress" http_echo || exit 1
bad=0
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here/openapi.py" \
    "$WB_BUILD/regress/http_echo" "$doc" || bad=1
if ! cmp -s "$here/package-lock.json" "$npm/package-lock.json" || [ ! -x "$npm/node_modules/.bin/redocly" ]; then
	mkdir -p "$npm" && cp "$here/package.json" "$npm" &&
	    rm -f "$npm/package-lock.json" &&
	    cp "$here/package-lock.json" "$npm/package-lock.json" &&
	    (cd "$npm" && npm ci --ignore-scripts --no-audit --no-fund) >"$npm/log" 2>&1 ||
	    { rm -f "$npm/package-lock.json"; tail -n 5 "$npm/log"; }
fi
# no report home, no look for a newer version
if out=$(cd "$npm" && REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true CI=1 \
    node_modules/.bin/redocly lint --max-problems 20 "$doc" 2>&1) &&
    ! printf '%s\n' "$out" | grep -qi 'warning'; then
	echo "ok - redocly has nothing to say"
else
	echo "not ok - redocly"
	printf '%s\n' "$out" | sed 's/^/# /'
	bad=1
fi

# the page: each code with its status, each route with its method
miss=$({
	sed -n 's/^CODE([0-9]*, [A-Z_]*, "\([a-z-]*\)", \([0-9]*\)).*/.It Li \1 Ta \2 Ta/p' "$top/common/proto.def"
	tr '\n' ' ' <"$top/apid/routes.def" | grep -o 'ROUTE([a-z_]*, [A-Z]*,[ 	]*"/[^"]*"' |
	    sed -n 's/.*, \([A-Z]*\),[ 	]*"\(.*\)"/.It Ic \1 \2/p'
} | while read -r line; do
	grep -Fq -- "$line" "$page" || echo "# $line"
done)
if [ -z "$miss" ]; then
	echo "ok - workbox-api(7) has every route, code and status"
else
	echo "not ok - workbox-api(7) lacks"
	echo "$miss"
	bad=1
fi
exit $bad
