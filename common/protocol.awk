# protocol.awk: the tables of workbox-protocol(7) from proto.def.
# usage: awk -f protocol.awk -v page=workbox-protocol.7.in -v header=proto.h
#	proto.def

function trim(s) { gsub(/^[ \t\n]+|[ \t\n]+$/, "", s); return s }
function words(s) {
	if (s ~ /ALL/)
		return "any"
	gsub(/[AS]_|[()]/, "", s)
	gsub(/ *\| */, ", ", s)
	return tolower(trim(s))
}
function charset(s) { sub(/^CS_/, "", s); return tolower(s) }
function bound(s) { sub(/WB_U63/, "2^63-1", s); sub(/UINT64_MAX/, "2^64-1", s)
	sub(/UINT32_MAX/, "2^32-1", s); return s }
function field(line,	name, n, a, t) {
	if (match(line, /^F_(FACTS|LIMITS)\(/)) {
		t = line; sub(/^F_/, "", t); sub(/\(.*/, "", t)
		return tolower(t) " (all of them)"
	}
	t = line; sub(/^F_/, "", t); sub(/\(.*/, "", t)
	sub(/^[^(]*\(/, "", line); sub(/\).*$/, "", line)
	n = split(line, a, /, */)
	name = a[2]
	if (t == "U64") return name " " bound(a[3]) " to " bound(a[4])
	if (t == "STR") return name " text of at most " a[3] ", " charset(a[4])
	if (t == "BIN") return name " bytes, " a[3] " to " a[4]
	if (t == "STRS") return name " list of at most " a[3] " texts, " charset(a[5])
	return name " list of at most " a[3] " byte strings"
}

/^#define/ { indef = 1 }
indef { if ($0 !~ /\\$/) indef = 0; next }
/^CODE\(/ {
	s = $0; sub(/^CODE\(/, "", s); sub(/\).*/, "", s); n = split(s, a, /, */)
	gsub(/"/, "", a[3])
	codes = codes ".It " a[1] " Ta " a[3] " Ta " a[4] "\n"
}
/^ROW\(/ { s = $0; sub(/^ROW\(/, "", s); sub(/,.*/, "", s); start(s, "row") }
/^MSG\(/ {
	s = $0
	while (s !~ /\)[ \t]*$/ && (getline more) > 0)
		s = s " " more
	sub(/^MSG\(/, "", s); sub(/\)[ \t]*$/, "", s)
	n = split(s, a, /, */)
	for (i = 1; i <= n; i++) a[i] = trim(a[i])
	names[a[1]] = a[2]
	rows[++nr] = a[1]
	info[a[1]] = words(a[4]) " to " words(a[5]) "; " words(a[6]) "; " \
	    tolower(substr(a[7], 4)) "; " a[8] "; "
	answer[a[1]] = a[9]
	start(a[2], a[1])
}
function start(name, what) { fields = fields ".It Sy " name "\n"; none = 1 }
/^\tSINCE\(/ { s = $0; sub(/.*, */, "", s); sub(/\).*/, "", s)
	since = "since version " s ": "; next }
/^\tF_/ { s = trim($0); sub(/[ \t]*\/\*.*$/, "", s)
	fields = fields (none ? "" : ";\n") since field(s)
	none = 0; since = "" }
/^END\(/ { fields = fields (none ? "no fields" : "") "\n" }

END {
	for (i = 1; i <= nr; i++) {
		k = rows[i]
		ans = answer[k] == 0 ? "-" : names[answer[k]]
		table = table ".It Sy " names[k] "\n" k "; " info[k] ans "\n"
	}
	while ((getline line < header) > 0)
		if (split(line, w) == 3 && w[2] == "PROTO_RUNNER_VERSION")
			runner = w[3]
	while ((getline line < page) > 0) {
		gsub(/@RUNNER@/, runner, line)
		if (line == "@TABLE@") printf "%s", table
		else if (line == "@FIELDS@") printf "%s", fields
		else if (line == "@CODES@") printf "%s", codes
		else print line
	}
}
