#!/usr/bin/python3
"""bounds.py: workbox-limits(7) against the sources, and the tests it names.

Reads the page and the tree, and nothing else: no build, no server.  Before
each row of the page stands in comments where its figures come from:

	.\\" FILE[,FILE...]: WHAT [UNIT] = FIGURE; WHAT [UNIT] = FIGURE

WHAT is an expression of #defines of the files; in conf.def a word, which is
its default, or with .min, .max, .count or .bytes behind it; in routes.def ROUTE.body or
ROUTE.PARAMETER[.min]; in proto.def MESSAGE.FIELD[.count]; in schemas.json a
path; or /a pattern/ without blanks, whose group is the number.  Its value is
FIGURE, and FIGURE stands in the row.  `= one' says that the row has no more
than a thing of which the file speaks by WHAT.

Must never pass a row whose figures it has not found in the sources.
"""
import ast
import functools
import glob
import json
import os
import re
import sys
from fractions import Fraction

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "workbox/workbox-limits.7"

# Rows that no test shows.  One that is not here fails; so does one that is
# here and has a test, or is no more.
UNSHOWN = set("""
a connection to the server
a part of a bundle or of evidence
changes that evidence lists
a runner's answer
a start of the daemons
a stop of the server
all bodies that are being read
all sandboxes together
an answer of the server
answers before the one to a request to upgrade
before clients are served at a start
certificates for a root file system
connecting to a name, in all
connections that wait to be taken, as while the daemons start again
ended sessions that are kept while readers of each are behind
environment that wb run hands on
files in these
for how long exec waits for the end when its sandbox is lost
from the launch of a sandbox until its runner is there
further groups of a user
input that waits for all commands of a sandbox
lists that are put in force at one time
memory of the host that is available for a new sandbox
memory of who reads such an archive
names that a shell completes
readers, and waits for ends, in one sandbox
requests to reconcile at one time
sandboxes of which /metrics has series
terminals
the configuration
the first stack of a process
the record and the tables
the start of a way out
time to take 1 KiB of an answer that is complete
until a session's command runs
until the first bytes to port 443 or 80 have said what they are for
what a crash may lose of what is not durable
""".strip().split("\n"))

# Files whose every number is on the page, but those that are nobody's but
# the program's own: sizes of its buffers, of its turns, names for numbers.
OURS = {
    "common/allow.h": "",
    "common/boxfd.h":
        "BOXFD_BOOT BOXFD_CGROUP1 BOXFD_CGROUP2 BOXFD_CONTROL BOXFD_LAST "
        "BOX_THREAD",
    "common/conf.h": "CONF_FD CONF_READY",
    "common/hostaddr.h": "",
    "common/http_parse.h": "",
    "common/maker_ask.h":
        "BOX_NONCE BOX_TOKEN MAKER_DAEMONS MAKER_FD MAKER_UNDER_WAY "
        "MAKER_USERNS",
    "common/proxy_files.h": "PROXY_SPARE",
    "common/sref.h": "",
    "runner/runner.h":
        "BOOKMARKS HELLO_MS PEERS_HELLO RING_PAGE RING_SLACK WIDE_CHUNKS",
    "runner/user.c": "",
    "apid/apid.h":
        "BOX_ENDED_KEPT FRAME_HEAD LINE_MAX_BYTES PROOF_MAX "
        "SESSION_INPUT_FIRST SESSION_ITEMS",
    "apid/http.h": "HTTP_PARTS HTTP_QUEUE_LOW",
    "apid/http_int.h": "HTTP_IN_MAX",
    "apid/http.c": "ACCEPT_PART IN_FIRST PAUSE_MS UNSENT_MAX",
    "apid/http_check.c": "BODY_FIRST NAME_TOLD",
    "apid/denials.c":
        "MSG_BURST MSG_RATE PAUSE_MS RING_FIRST ROWS_BYTES ROW_MAX",
    "apid/api_exec.c":
        "CHUNK_BYTES FRAMES_MOST GAP_MAX HTTP_FRAMING LINES_MOST PIECES",
    "apid/api_sandboxes.c": "NAME_TRIES",
    "apid/api_sessions.c": "ROWS_PAGE",
    "apid/auth.c": "",
    "apid/disk.c":
        "CALM_TICKS HORIZON_S LEAST_BUSY LOOKED_MS MOST_PER_USEC PROOF_TICKS "
        "ROUND_TICKS SKEW_MS STALE_MS STRIKES_MS STUCK_TICKS SURE_TICKS "
        "VAIN_TICKS WAIT_TICKS WATCH_TICKS",
    "apid/metrics.c": "",
    "apid/resume.c": "CLOCK_SLACK_MS RUNNER_PAGES",
    "apid/runner.c": "MSG_BURST MSG_RATE PAUSE_MS",
    "netd/netd.h":
        "EGRESS_LOG_BYTES EGRESS_LOG_GROUP NETNS_INFLIGHT NET_HASHLEN "
        "PROXY_SOCKS RELAY_PORT RS_FAMILIES",
    "netd/denials.c": "AGAIN_MS ALL BIND_MS TURN",
    "netd/proxy.c": "AGAIN_MS LOOK_S",
    "netd/uplink.c": "LOOK_S",
    "uplinkd/uplinks.c": "AGAIN_MS END_TRIES",
    "uplinkd/cgroup.c": "KEEP",
    "proxyd/proxyd.h": "DNS_T_A DNS_T_AAAA NAMES_NET",
    "proxyd/box.c": "AGAIN BUCKETS LAST_PAGE ROWS_BYTES TAKE",
    "proxyd/dial.c": "RECEIVE UNSENT",
    "proxyd/head.c": "STATUS_LEN",
    "proxyd/looks.c": "",
    "proxyd/ns.c": "NS_PORT PAUSE_US PREFIX TURN",
    "proxyd/relay.c":
        "ACCEPTS CONN_BYTES PAUSE_MS RECEIVE_ALL RECEIVE_LEAST "
        "RECEIVE_MANY TURN_BYTES",
    "proxyd/resolve.c": "PAUSE_MS RETRY_MS",
    "stored/stored.h":
        "CLIENT_KEY DB_SCHEMA DB_SLACK JOB_PURGE LIST_KEY PURGE_ROWS READ_MAX "
        "RECORD_HASH ROW_ITEMS",
    "stored/stored.c":
        "APID_FD LOAD_HIGH PRIVD_FD PROXYD_FD PURGE_SECONDS TURN_MSGS",
    "stored/commit.c": "BATCH_BYTES BATCH_JOBS STACK_BYTES TELL_MS",
    "privd/privd.h": "TABLE_MAX",
    "privd/daemons.c": "BURST",
    "privd/life.c": "LOG_READS PURGE_MS RIDS",
    "workbox/host.h": "CONFIG_WHY TREE_DEPTH",
    "workbox/room.h": "",
    "workbox/workbox.h":
        "EXIT_CANNOT EXIT_LATE EXIT_MISSING EXIT_OURS EXIT_SIGNAL "
        "NEAREST_MOST SETTINGS_WHY",
    "workbox/again.c": "STEP_MS",
    "workbox/client.c": "",
    "workbox/logs.c": "SLACK_MS WAIT_SECONDS",
    "workbox/rootfs_import.c": "GIB",
}

# Of a request, and in no schema.
REQUEST = ("Idempotency-Key", "limits", "body")

SCHEMAS = ("Labels", "Env", "LimitsSpec", "SandboxSpec", "NetworkSpec",
           "Allow", "SessionLimits", "SessionSpec", "SignalSpec")
WHO = ("the kernel", "runner", "apid", "netd", "proxyd", "stored", "privd",
       "maker", "uplinkd", "slirp4netns", "workbox", "wb")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
         "ms": Fraction(1, 1000), "second": 1, "minute": 60, "hour": 3600,
         "day": 86400}

failed = False


def check(what, bad):
    """bad: sentences; none is well."""
    global failed
    if bad:
        failed = True
        print("not ok - %s: %d" % (what, len(bad)))
        for b in bad:
            print("  " + b)
    else:
        print("ok - " + what)


@functools.lru_cache(None)
def text(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


# ---- numbers in the sources ------------------------------------------------

@functools.lru_cache(None)
def defines(path):
    """name -> what stands behind it, comments left out."""
    src = re.sub(r"/\*.*?\*/", " ", text(path), flags=re.S)
    src = src.replace("\\\n", " ")
    return {m.group(1): m.group(2).strip() for m in re.finditer(
        r"^#\s*define\s+(\w+)[ \t]+(.+)$", src, re.M)}


@functools.lru_cache(None)
def headers():
    every = {}
    for path in glob.glob(os.path.join(TOP, "*/*.h")):
        for n, e in defines(os.path.relpath(path, TOP)).items():
            every.setdefault(n, e)
    return every


OPS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b,
       ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a // b,
       ast.LShift: lambda a, b: a << b, ast.BitOr: lambda a, b: a | b}


def number(expr, names=lambda n: None):
    """The value of an expression of C, or None: it is no number."""
    expr = re.sub(r"\bU?INT(?:32|64)_C\(([^()]*)\)", r"\1", expr)
    expr = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", expr)

    def value(n):
        if isinstance(n, ast.Constant) and isinstance(n.value, int):
            return n.value
        if isinstance(n, ast.BinOp) and type(n.op) in OPS:
            return OPS[type(n.op)](value(n.left), value(n.right))
        if isinstance(n, ast.Name):
            v = names(n.id)
            if v is not None:
                return v
        raise ValueError
    try:
        return value(ast.parse(expr.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def macro(files):
    def find(name, depth=0):
        for f in files:
            e = defines(f).get(name)
            if e is not None:
                break
        else:
            e = headers().get(name)
        if e is None or depth > 8:
            return None
        return number(e, lambda n: find(n, depth + 1))
    return find


@functools.lru_cache(None)
def rows(path):
    """Calls of macros in a table: [(name, [arguments])]."""
    src = re.sub(r"/\*.*?\*/", " ", text(path), flags=re.S)
    src = re.sub(r"^#(?:.*\\\n)*.*$", "", src, flags=re.M)
    out = []
    for m in re.finditer(r"\b([A-Z][A-Z0-9_]*)\(", src):
        depth, quoted, arg, args = 1, False, "", []
        for c in src[m.end():]:
            if c == '"':
                quoted = not quoted
            if not quoted and c == "(":
                depth += 1
            elif not quoted and c == ")":
                depth -= 1
                if depth == 0:
                    break
            if c == "," and depth == 1 and not quoted:
                args.append(arg.strip())
                arg = ""
            else:
                arg += c
        out.append((m.group(1), args + [arg.strip()]))
    return out


@functools.lru_cache(None)
def words():
    """Words of the configuration: what there is to say of each."""
    out = {}
    for kind, a in rows("common/conf.def"):
        word = a[0].strip('"')
        if kind == "C_U64":
            out.update({word: a[4], word + ".min": a[2], word + ".max": a[3]})
        elif kind == "C_STR":
            out[word + ".max"] = a[2]
        elif kind == "C_LIST":
            out.update({word + ".count": a[2], word + ".bytes": a[3]})
        if kind.startswith("C_"):
            out.setdefault(word, None)
    return out


@functools.lru_cache(None)
def routes():
    out = {}
    for kind, a in rows("apid/routes.def"):
        if kind in ("BODY", "RAW"):
            out[a[0] + ".body"] = a[2 if kind == "BODY" else 1]
        elif kind in ("Q_U64", "Q_NEED"):
            out["%s.%s" % (a[0], a[1].strip('"'))] = a[3]
            out["%s.%s.min" % (a[0], a[1].strip('"'))] = a[2]
        elif kind in ("Q_STR", "Q_STRS"):
            out["%s.%s" % (a[0], a[1].strip('"'))] = a[2]
    return out


@functools.lru_cache(None)
def fields():
    out = {}
    for kind, a in rows("common/proto.def"):
        if kind in ("F_STRS", "F_BINS"):
            out["%s.%s.count" % (a[0], a[1])] = a[2]
            out["%s.%s" % (a[0], a[1])] = a[3]
        elif kind == "F_STR":
            out["%s.%s" % (a[0], a[1])] = a[2]
        elif kind in ("F_U64", "F_BIN"):
            out["%s.%s" % (a[0], a[1])] = a[3]
    return out


@functools.lru_cache(None)
def schemas():
    return json.loads(text("apid/schemas.json"))


def schema(path):
    """The number at the end of A.b.c; `properties' may be left out."""
    node = schemas()
    for step in path.split("."):
        if isinstance(node, list):
            node = node[int(step)]
        elif step in node:
            node = node[step]
        else:
            node = node.get("properties", {}).get(step)
        if node is None:
            return None
        if isinstance(node, dict) and "$ref" in node:
            node = schemas()[node["$ref"].split("/")[-1]]
    return node if isinstance(node, (int, float)) else None


TABLES = {"common/conf.def": words, "apid/routes.def": routes,
          "common/proto.def": fields}


def source(what, files):
    """Its value; None: it is not there, or no number."""
    if what.startswith("/") and what.endswith("/"):
        found = {m.group(1) for f in files
                 for m in re.finditer(what[1:-1], text(f))}
        return number(found.pop().replace(",", ""), macro(files)) \
            if len(found) == 1 else None
    if files[0] == "apid/schemas.json":
        v = schema(what)
        return None if v is None else Fraction(str(v))
    table = TABLES.get(files[0])
    if table is not None:
        e = table().get(what)
        return None if e is None else number(e, macro(files))
    if not all(any(n in defines(f) for f in files)
               for n in re.findall(r"[A-Za-z_]\w*", what)):
        return None
    return number(what, macro(files))


# ---- numbers of the page ---------------------------------------------------

NUMBER = r"(?:0x[0-9a-f]+|1/\d+|\d[\d,]*(?:\.\d+)?)"


def unit(word):
    return UNITS.get(word) or UNITS.get(word.rstrip("s"))


def figure(f):
    """A figure as it is written, in bytes, seconds or pieces; is it time?"""
    m = re.match(r"(%s)(?: (\S+).*)?$" % NUMBER, f)
    if m is None:
        return None, False
    n = m.group(1).replace(",", "")
    u = unit(m.group(2) or "")
    v = Fraction(int(n, 16)) if n.startswith("0x") else \
        Fraction(int(n[2:])) if n.startswith("1/") else Fraction(n)
    return v * (u or 1), u is not None and "iB" not in m.group(2)


def is_time(what, said):
    """The unit of a source's number: what a second is in it, or 0."""
    if said is not None:
        return {"ms": 1000, "s": 1, "us": 1000000}[said]
    return 1000 if re.search(r"_MS\b", what) else \
        1 if re.search(r"_(S|SECONDS)\b", what) else 0


MARK = re.compile(r"(?:^| )Em (fixed|option|by|seen|test)(?= )")
MACRO = re.compile(r"(?:^|(?<= ))(?:Em|No|Ic|Fl|Li|Pa|Dq)(?: |$)")


class Row:
    """A row: its head, where its figures come from, and its parts."""
    def __init__(self, head, ties):
        self.head, self.ties, self.flat = head, ties, ""
        self.title = head.split(":")[0]

    def add(self, line):
        self.flat += " " + line.removeprefix(".")

    def part(self, name):
        """Its text, with macros in it, or None."""
        found = MARK.split(self.flat)
        return found[found.index(name) + 1].strip() if name in found[1::2] \
            else None

    def text(self):
        return re.sub(r" +", " ", MACRO.sub("", self.head + self.flat))


def read_ties(files, line):
    """-> ([(what, files, unit, figure)], what is wrong or None)"""
    ties = []
    for t in line.split("; "):
        m = re.match(r"(?:([\w./,-]+): )?(\S+)(?: (ms|s|us))? = (.+)$", t)
        if m is None:
            return ties, "no figure: " + t
        files = m.group(1) or files
        ties.append((m.group(2), files) + m.groups()[2:])
    return ties, None


def read_page():
    out, ties, bad, row = [], [], [], None
    src = text(PAGE).replace("\\\n", "")
    for ln in src[src.index("\n.Sh SANDBOXES"):src.index(
            "\n.Sh SEE ALSO")].split("\n"):
        if ln.startswith('.\\" '):
            more, fault = read_ties(None, ln[4:])
            ties += more
            bad += [fault] if fault else []
        elif ln.startswith(".It "):
            row = Row(ln[4:], ties)
            out.append(row)
            ties = []
        elif ln.startswith((".Bl", ".El", ".Sh", ".Ss")):
            row = None
        elif row is not None:
            row.add(ln)
    if ties:
        bad.append("comments without a row: %s" % ties)
    return out, bad


# ---- figures ---------------------------------------------------------------

def tie(row, what, files, said_unit, fig):
    """What is wrong with where one figure comes from, or None."""
    files = files.split(",")
    for f in files:
        if not os.path.isfile(os.path.join(TOP, f)):
            return "%s is not there" % f
    if fig == "one":
        return None if re.search(r"\b%s\b" % re.escape(what), text(
            files[0])) else "%s has no %s" % (files[0], what)
    want, (got, timed) = source(what, files), figure(fig)
    if want is None:
        return "%s has no number %s" % (",".join(files), what)
    if got is None:
        return "%s is no figure" % fig
    a_second = is_time(what, said_unit)
    if bool(a_second) != timed:
        return "%s: %s a time" % (what, "it is" if a_second else "it is not")
    if a_second:
        got *= a_second
    if got != want:
        return "%s is %s in %s, and %s on the page" % (what, want, files[0],
                                                       fig)
    if re.search(r"(?<![\w.,/])%s(?![\w/]|[.,]\d)" % re.escape(fig),
                 row.text()) is None:
        return "the row does not say %s (%s)" % (fig, what)
    return None


def figures(page):
    bad = []
    for row in page:
        if not row.ties:
            bad.append("%s: no figure" % row.title)
        for t in row.ties:
            fault = tie(row, *t)
            if fault is not None:
                bad.append("%s: %s" % (row.title, fault))
        tied = " ".join(t[3] for t in row.ties)
        for n in re.findall(r"(?<![\w.,/])%s(?![\w/])" % NUMBER, row.head):
            if n.rstrip(",") not in re.findall(NUMBER, tied):
                bad.append("%s: %s is out of nowhere" % (row.title, n))
    check("each of %d rows has the figures of the sources" % len(page), bad)


# ---- words -----------------------------------------------------------------

@functools.lru_cache(None)
def codes():
    return {a[2].strip('"'): a[3] for kind, a in rows("common/proto.def")
            if kind == "CODE"}


@functools.lru_cache(None)
def options():
    return {m for f in glob.glob(os.path.join(TOP, "workbox/*.[ch]"))
            for m in re.findall(r'"([a-z][a-z0-9-]*)"', open(f).read())}


def known(macro_, w):
    """Whether what an option is called by is one."""
    if macro_ == "Ic":
        return w in words()
    if macro_ == "Fl":
        return w in options()
    return macro_ != "Li" or w in REQUEST or all(re.search(
        r'"%s"' % step, text("apid/schemas.json") + text("apid/routes.def"))
        for step in w.split("."))


def said(page):
    bad = []
    titles = [row.title for row in page]
    for row in page:
        if titles.count(row.title) > 1:
            bad.append("%s: stands twice" % row.title)
        for p in ("by", "seen", "test"):
            if not row.part(p):
                bad.append("%s: it has no `%s'" % (row.title, p))
        if (row.part("fixed") is None) == (row.part("option") is None):
            bad.append("%s: neither fixed nor an option, or both" % row.title)
        if not any(re.search(r"\b%s\b" % w, row.part("by") or "")
                   for w in WHO):
            bad.append("%s: by nobody" % row.title)
        at = None
        for w in (row.part("option") or "").split():
            if MACRO.match(w):
                at = w
            elif re.match(r"-?[a-zA-Z]", w) and not known(
                    at, w.lstrip("-")):
                bad.append("%s: no option %s" % (row.title, w))
        for status, code in re.findall(r"\b(\d+) ([a-z]+(?:-[a-z]+)*)\b",
                                       row.text()):
            if codes().get(code, status if "-" not in code else "") != status:
                bad.append("%s: %s is no answer %s" % (row.title, code,
                                                       status))
    check("each row says what it has to", bad)


# ---- tests -----------------------------------------------------------------

STATEMENT = re.compile(r"\b(ok|no|is|like|want|pass|prog|checks|check|case|"
                       r"refuse|seems|E)\b")


def shown(path, name):
    """What is wrong with a test that a row names, or None."""
    full = os.path.join(TOP, path)
    if not os.path.isfile(full):
        return "%s is not there" % path
    if name is None:
        return None if path.endswith(".in") and os.path.exists(
            full[:-3] + ".ok") else "%s: which of its tests" % path
    src = text(path)
    if re.search(r"START_TEST\(%s\)" % re.escape(name), src):
        return None if re.search(r"tcase_add\w*\([^;]*\b%s\b" % re.escape(
            name), src) else "%s: %s is not run" % (path, name)
    for ln in src.split("\n"):
        if not ln.lstrip().startswith("#") and STATEMENT.search(ln) and \
                re.search(r'"[^"]*%s' % re.escape(name), ln):
            return None
    return "%s has no test %s" % (path, name)


def named(part):
    """[(path, name or None)] of the part `test' of a row."""
    out, path, names = [], None, 0
    for m in re.finditer(r'Pa (\S+)|Dq "([^"]*)"|No (\w+(?:, \w+)*)', part):
        if m.group(1):
            if path is not None and names == 0:
                out.append((path, None))
            path, names = "regress/" + m.group(1), 0
        elif path is not None:
            more = [m.group(2)] if m.group(2) else m.group(3).split(", ")
            out += [(path, n) for n in more]
            names += len(more)
    if path is not None and names == 0:
        out.append((path, None))
    return out


def tests(page):
    bad, none, n = [], set(), 0
    for row in page:
        there = named(row.part("test") or "")
        n += len(there)
        for path, name in there:
            fault = shown(path, name)
            if fault is not None:
                bad.append("%s: %s" % (row.title, fault))
        if not there:
            none.add(row.title)
            if row.part("test") != "No none.":
                bad.append("%s: a test, or `none.'" % row.title)
    bad += ["%s: no test" % t for t in sorted(none - UNSHOWN)]
    bad += ["%s: no such row without a test" % t for t in sorted(
        UNSHOWN - none)]
    check("%d tests are there; of all rows %d have none" % (n, len(UNSHOWN)),
          bad)


# ---- what has to have a row ------------------------------------------------

def bounds_of_schemas():
    def walk(node, path):
        for k, v in node.items() if isinstance(node, dict) else \
                enumerate(node) if isinstance(node, list) else ():
            at = path if k == "properties" else "%s.%s" % (path, k)
            if k in ("maximum", "maxLength", "maxItems", "maxProperties") or \
                    (k == "minimum" and v not in (0, 1)):
                yield at, v
            yield from walk(v, at)
    for s in SCHEMAS:
        yield from walk(schemas()[s], s)


def all_there(page):
    bad, tied = [], {}
    for row in page:
        for what, files, _, fig in row.ties:
            for f in files.split(","):
                tied.setdefault(f, set()).update(
                    re.findall(r"[\w.-]+", what) if f not in TABLES and
                    f != "apid/schemas.json" and what[0] != "/" else [what])
    for f, ours in OURS.items():
        ours = set(ours.split())
        numbers = {n for n, e in defines(f).items()
                   if number(e, macro([f])) is not None}
        told = {w for t in tied.get(f, ()) for w in re.findall(r"\w+", t)}
        bad += ["%s: %s has no row" % (f, n) for n in sorted(
            numbers - told - ours)]
        bad += ["%s: %s is no number of its own" % (f, n) for n in sorted(
            ours - numbers | ours & told)]
    for f, table in TABLES.items():
        if f == "common/proto.def":
            continue
        for w, e in table().items():
            v = None if e is None else number(e, macro([f]))
            if v is not None and not w.endswith(".min") and not (
                    f == "common/conf.def" and w.endswith(".max")) and \
                    v not in (0, 1, 2 ** 63 - 1) and \
                    w not in tied.get(f, ()):
                bad.append("%s: %s has no row" % (f, w))
    for w, v in bounds_of_schemas():
        if v != 2 ** 63 - 1 and w not in tied.get("apid/schemas.json", ()):
            bad.append("apid/schemas.json: %s has no row" % w)
    check("no bound of %d files is without a row" % (len(OURS) + len(TABLES)),
          bad)


def main():
    page, bad = read_page()
    check("the page is read", bad + (["few rows"] if len(page) < 100 else []))
    figures(page)
    said(page)
    tests(page)
    all_there(page)
    return failed


if __name__ == "__main__":
    sys.exit(main())
