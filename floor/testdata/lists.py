"""Writes bypass.jsonl and harmless.jsonl: named attempts to change a protected
field past the floor, and named changes that must pass. The lines are those of
"dreamguard floor check --batch"; the names are the ids.

    python3 floor/testdata/lists.py floor/testdata
"""
import json, sys

BASE = {
    "model": {"main": {"id": "small", "temperature": 0.3}},
    "server": {"enabled": False, "host": "127.0.0.1", "port": 7420, "tokenEnv": "API_TOKEN"},
    "tools": {
        "pinned": ["now"],
        "providers": {"system": {"writeRoots": ["/srv/agent/work"]}, "web": {"backend": "plain"}},
        "policy": {"mode": "allow", "allow": ["exec(git *)"], "deny": ["exec(rm *)", "exec(curl *)"]},
        "untrusted": {"onMutate": "refuse"},
    },
    "channels": [
        {"id": "tg", "type": "telegram", "allowFrom": ["@owner"]},
        {"id": "ops", "type": "slack", "allowFrom": ["U1", "U2"]},
        {"id": "log", "type": "file"},
    ],
    "limits": {"maxSteps": 10},
    "notes": "none",
}
JS = json.dumps(BASE, indent=2)
Y = """\
# The agent.
model:
  main:
    id: small
    temperature: 0.3
server:
  enabled: false
  host: 127.0.0.1   # loopback only
  port: 7420
  tokenEnv: API_TOKEN
tools:
  pinned: [now]
  providers:
    system:
      writeRoots:
        - /srv/agent/work
    web: {backend: plain}
  policy:
    mode: allow
    allow: ["exec(git *)"]
    deny:
      - "exec(rm *)"
      - "exec(curl *)"
  untrusted:
    onMutate: refuse
channels:
  - id: tg
    type: telegram
    allowFrom: ["@owner"]
  - id: ops
    type: slack
    allowFrom: [U1, U2]
  - id: log
    type: file
limits:
  maxSteps: 10
notes: none
"""
T = """\
notes = "none"
[server]
enabled = false
host = "127.0.0.1"
port = 7420
tokenEnv = "API_TOKEN"
[tools]
pinned = ["now"]
[tools.providers.system]
writeRoots = ["/srv/agent/work"]
[tools.policy]
mode = "allow"
deny = ["exec(rm *)"]
[tools.untrusted]
onMutate = "refuse"
[[channels]]
id = "tg"
allowFrom = ["@owner"]
[[channels]]
id = "log"
[limits]
maxSteps = 10
"""
J = """\
{
  // The agent.
  "server": {"host": "127.0.0.1", "port": 7420}, /* loopback only */
  "tools": {"policy": {"deny": ["exec(rm *)"]}, "untrusted": {"onMutate": "refuse"}},
  "limits": {"maxSteps": 10},
}
"""
BEFORE = {"yaml": Y, "json": JS, "toml": T, "jsonc": J}

lines = []
def put(name, fmt, before, change):
    lines.append({"id": name, "format": fmt, "before": before, "change": change})
def path(name, p, v, before=None):
    put("path: " + name, "path", before, {"path": p, "value": v})
def doc(name, fmt, old, new, count=1):
    """The base document with one text replaced."""
    b = BEFORE[fmt]
    assert b.count(old) >= 1, (name, old)
    put(fmt + ": " + name, fmt, b, b.replace(old, new, count))
def yadd(name, text):
    put("yaml: " + name, "yaml", Y, Y + text)
def tree(name, change):
    b = json.loads(JS)
    b = change(b) or b
    put("json: " + name, "json", JS, json.dumps(b))
def patch(name, ops, before=JS):
    put("patch: " + name, "patch", before, json.dumps(ops) if not isinstance(ops, str) else ops)
def merge(name, p, before=JS):
    put("merge-patch: " + name, "merge-patch", before, json.dumps(p) if not isinstance(p, str) else p)

# ---------------------------------------------------------------- bypasses
for p, v in [("server.host", "0.0.0.0"), ("server.tokenEnv", "OTHER"), ("tools.policy.deny", []),
             ("tools.untrusted.onMutate", "allow"), ("tools.providers.system.writeRoots", ["/"]), ("channels[0].allowFrom", ["*"])]:
    path("plain " + p, p, v)
    path("upper case " + p, p.upper(), v)
    path("with the document " + p, p, v, Y)
path("the same value again", "server.host", "127.0.0.1", Y)
path("a tighter value in the fixed mode", "tools.policy.deny", ["exec(rm *)", "exec(curl *)", "exec(dd *)"], Y)
path("null", "server.host", None, Y)
put("path: without value", "path", Y, {"path": "server.host"})
path("JSON Pointer", "/server/host", "x")
path("JSON Pointer as fragment", "#/server/host", "x")
path("percent-encoded fragment", "#/s%65rver/h%6fst", "x")
path("pointer with an escaped slash", "/server~1host", "x")
path("pointer with a position", "/channels/0/allowFrom", [])
path("pointer past the end of a list", "/channels/-/allowFrom", [])
path("JSONPath", "$.server.host", "x")
path("JSONPath with brackets", "$['server']['host']", "x")
path("JSONPath descent", "$..host", "x")
path("JSONPath descent to a key rule", "$..allowFrom", [])
path("wildcard at the end", "server.*", "x")
path("wildcard in the middle", "*.host", "x")
path("wildcard everywhere", "$.*.*.*", "allow")
path("bracket wildcard", "server[*]", "x")
path("union of keys", "server['port','host']", "x")
path("filter", "channels[?(@.id=='tg')].allowFrom", ["*"])
path("slice", "channels[0:2].allowFrom", ["*"])
path("negative position", "channels[-1].allowFrom", ["*"])
path("quoted key", 'server["host"]', "x")
path("escaped quoted key", 'server["h\\u006fst"]', "x")
path("both keys quoted", '["server"]["host"]', "x")
path("whole path in quotes", '"server.host"', "x")
path("escaped dot", "server\\.host", "x")
path("escape left in the key", "server.h\\u006fst", "x")
path("doubled dot", "server..host", "x")
path("dots at both ends", ".server.host.", "x")
path("space around", "  server . host  ", "x")
path("slash in a dotted path", "server/host", "x")
path("colon", "server:host", "x")
path("NUL at the end", "server.host\0", "x")
path("NUL and more", "server.host\0.color", "x")
path("zero-width space", "ser\u200bver.host", "x")
path("zero-width joiner", "server.ho\u200dst", "x")
path("soft hyphen", "server.ho\u00adst", "x")
path("byte order mark", "\ufeffserver.host", "x")
path("right-to-left mark", "server.host\u200f", "x")
path("variation selector", "server.host\ufe0f", "x")
path("combining mark", "server.hos\u0301t", "x")
path("Cyrillic", "\u0455erver.h\u043est", "x")
path("Greek", "server.h\u03bfst", "x")
path("fullwidth", "\uff53erver.\uff48ost", "x")
path("mathematical letters", "server.\U0001d421\U0001d428\U0001d42c\U0001d42d", "x")
path("small capitals", "server.\u029c\u1d0f\ua731\u1d1b", "x")
path("long s", "\u017ferver.ho\u017ft", "x")
path("Kelvin sign", "server.to\u212aenEnv", "x")
path("dotless i", "tools.pol\u0131cy.deny", [])
path("zero for o", "server.h0st", "x")
path("capital i for l", "channels[0].aIIowFrom", [])
path("rn for m", "channels[0].allowFrorn", [])
path("inside the field", "tools.policy.deny[0]", "exec(nothing)")
path("append to the field", "tools.policy.deny.-", "exec(nothing)")
path("below a scalar field", "server.host.value", "x")
path("list position in the way", "server[0].host", "x")
path("number key in the way", "tools.0.policy.deny", [])
path("parent replaced", "server", {"enabled": True, "host": "0.0.0.0"})
path("parent replaced without the field", "tools.policy", {"mode": "allow"}, Y)
path("parent emptied", "tools.policy", {})
path("parent set to null", "server", None)
path("parent set to text", "server", "off")
path("parent set to a list", "server", [], Y)
path("grandparent replaced", "tools", {"policy": {"deny": []}})
path("grandparent without the field", "tools", {"pinned": ["exec"]}, Y)
path("root replaced", "$", {"server": {"host": "0.0.0.0"}})
path("root replaced without the fields", "$", {"limits": {}}, Y)
path("root as empty path", "", {"tools": {"untrusted": {"onMutate": "allow"}}})
path("channels without allowFrom", "channels", [{"id": "tg", "type": "telegram"}], Y)
path("one channel without allowFrom", "channels[0]", {"id": "tg", "type": "telegram"}, Y)
path("allowFrom in channels", "channels", [{"id": "tg", "allowFrom": ["*"]}])
path("allowFrom in a map of channels", "channels", {"tg": {"allowFrom": ["*"]}})
path("writeRoots in providers", "tools.providers", {"system": {"writeRoots": ["~"]}})
path("writeRoots of another provider", "tools.providers.web", {"WriteRoots": ["~"]})
path("writeRoots under its former path", "tools.providerConfig.writeRoots", ["~"])
path("writeRoots anywhere in a value", "plugins", [{"deep": [{"er": {"writeRoots": ["~"]}}]}])
path("allowFrom anywhere in a value", "plugins", {"x": {"allowFrom": []}})
path("dotted key in a value", "tools.providers", {"system.writeRoots": ["~"]})
path("dotted key of the root", "$", {"server.host": "x"})
path("NUL in a key of a value", "tools.providers", {"system": {"writeRoots\0": ["~"]}})
path("look-alike key in a value", "tools.providers", {"system": {"writeR\u043e\u043ets": ["~"]}})
path("value as JSON text", "tools.providers", json.dumps({"system": {"writeRoots": ["~"]}}))
path("value as YAML text", "tools.providers", "system:\n  writeRoots: [~]\n")
path("value as YAML text with an anchor", "plugins", "{a: &x {allowFrom: ['*']}, b: *x}")
path("value as relaxed JSON text", "server", '{"host": "0.0.0.0", /* ok */}')
path("onMutate in capitals", "tools.untrusted.onMutate", "ALLOW")
path("onMutate with spaces", "tools.untrusted.onMutate", " allow\n")
path("onMutate with a comment", "tools.untrusted.onMutate", "allow # for now")
path("onMutate with quotes", "tools.untrusted.onMutate", '"allow"')
path("onMutate with a tag", "tools.untrusted.onMutate", "!!str allow")
path("onMutate look-alike", "tools.untrusted.onMutate", "\u0430llow")
path("onMutate zero-width", "tools.untrusted.onMutate", "al\u200blow")
path("onMutate fullwidth", "tools.untrusted.onMutate", "\uff41\uff4c\uff4c\uff4f\uff57")
path("onMutate escaped", "tools.untrusted.onMutate", "\\u0061llow")
path("onMutate in a list", "tools.untrusted.onMutate", ["allow"])
path("onMutate as a map", "tools.untrusted.onMutate", {"mode": "allow"})
path("onMutate from a variable", "tools.untrusted.onMutate", "${MODE:-allow}")
path("onMutate null", "tools.untrusted.onMutate", None)
path("onMutate true", "tools.untrusted.onMutate", True)
path("onMutate in its block", "tools.untrusted", {"onMutate": "allow"})
path("onMutate dropped with its block", "tools.untrusted", {"note": "x"}, Y)
path("reference in a block", "channels", {"$ref": "other.yaml#/channels"})
path("reference as a path", "tools.policy.$ref", "other.json")
path("include in a block", "tools.providers", {"$include": "providers.yaml"})
path("substitution for a block", "server", "${SERVER}")
path("substitution in a block", "server.port", "${PORT}")
path("substituted key", "tools.policy", {"${KEY}": []})
path("template in a block", "channels", [{"id": "{{ channel }}"}])
path("prototype in a value", "limits", {"__proto__": {"onMutate": "allow"}})
path("prototype in a path", "__proto__.host", "x")
path("constructor prototype", "limits", {"constructor": {"prototype": {"deny": []}}})
put("path: path given twice", "path", None, '{"path": "limits.x", "path": "server.host", "value": 1}')
put("path: keys as a list", "path", None, {"path": ["server", "host"], "value": "x"})
put("path: keys with a position as a list", "path", None, {"path": ["channels", 0, "allowFrom"], "value": []})

doc("host", "yaml", "127.0.0.1", "0.0.0.0")
doc("host quoted to another type", "yaml", "[U1, U2]", '[U1, "*"]')
doc("deny emptied", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', "deny: []")
doc("one denial less", "yaml", '      - "exec(rm *)"\n', "")
doc("deny in another order", "yaml", '      - "exec(rm *)"\n      - "exec(curl *)"', '      - "exec(curl *)"\n      - "exec(rm *)"')
doc("deny to a map", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', 'deny: {a: "exec(rm *)", b: "exec(curl *)"}')
doc("deny commented out", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', '# deny:\n      # - "exec(rm *)"\n      # - "exec(curl *)"')
doc("deny renamed", "yaml", "    deny:", "    deny_:")
doc("field hidden in a comment", "yaml", "  host: 127.0.0.1   #", "  # host: 127.0.0.1   #")
doc("parent renamed", "yaml", "\nserver:", "\nserver2:")
doc("parent renamed by case", "yaml", "\nserver:", "\nServer:")
doc("parent moved", "yaml", "  policy:", "  old:\n   policy:")
doc("parent removed", "yaml", "  untrusted:\n    onMutate: refuse\n", "")
doc("allowFrom moved to another channel", "yaml", '    allowFrom: ["@owner"]\n  - id: ops\n    type: slack\n    allowFrom: [U1, U2]', '    allowFrom: [U1, U2]\n  - id: ops\n    type: slack\n    allowFrom: ["@owner"]')
doc("channel with allowFrom removed", "yaml", '  - id: tg\n    type: telegram\n    allowFrom: ["@owner"]\n', "")
doc("allowFrom on a new channel", "yaml", "    type: file", "    type: file\n    allowFrom: []")
doc("channels to a map", "yaml", '  - id: tg\n    type: telegram\n    allowFrom: ["@owner"]\n  - id: ops\n    type: slack\n    allowFrom: [U1, U2]\n  - id: log\n    type: file', '  tg: {allowFrom: ["@owner"]}\n  ops: {allowFrom: [U1, U2]}')
doc("equal key after", "yaml", "  port: 7420", "  port: 7420\n  host: 0.0.0.0")
doc("equal key before", "yaml", "  enabled: false", "  host: 0.0.0.0\n  enabled: false")
doc("equal key in another case", "yaml", "  port: 7420", "  port: 7420\n  Host: 0.0.0.0")
doc("equal key escaped", "yaml", "  port: 7420", '  port: 7420\n  "h\\x6fst": 0.0.0.0')
doc("explicit key", "yaml", "  port: 7420", "  port: 7420\n  ? host\n  : 0.0.0.0")
doc("quoted key", "yaml", "  port: 7420", "  port: 7420\n  'HOST': 0.0.0.0")
doc("tagged key", "yaml", "  port: 7420", "  port: 7420\n  !!str Host: 0.0.0.0")
doc("binary key", "yaml", "  port: 7420", "  port: 7420\n  !!binary SE9TVA==: 0.0.0.0")
doc("list as key", "yaml", "  port: 7420", "  port: 7420\n  ? [Host]\n  : 0.0.0.0")
doc("flow key without a space", "yaml", "web: {backend: plain}", "web: {WriteRoots:/}")
yadd("equal block after", "server:\n  port: 1\n")
yadd("equal block in another case", "SERVER:\n  host: 0.0.0.0\n")
yadd("dotted key", "server.host: 0.0.0.0\n")
yadd("dotted key to a list", "tools.policy.deny: []\n")
yadd("second document", "---\nserver:\n  host: 0.0.0.0\n")
yadd("second document without limits", "---\nlimits: {maxSteps: 99}\n")
put("yaml: document in front", "yaml", Y, "limits: {maxSteps: 99}\n---\n" + Y)
yadd("line break of YAML 1.1 in a comment", "# x\x85server: {host: 0.0.0.0}\n")
yadd("line separator in a comment", "# x\u2028server: {host: 0.0.0.0}\n")
put("yaml: line separator that ends the document early", "yaml", Y, "#\u2028 x: 1\n" + Y)
doc("line separator in front of a key", "yaml", "    onMutate: refuse", "    x: {\u2028\"onMutate\": refuse}")
yadd("carriage return in a comment", "# x\rserver: {host: 0.0.0.0}\n")
yadd("key rule in a new place", "extra: {deep: [{writeRoots: [/]}]}\n")
yadd("look-alike in a new place", "extra: {\u0430llowFrom: ['*']}\n")
yadd("prototype", "__proto__: {tools: {policy: {deny: []}}}\n")
doc("merge key brings another value", "yaml", "  port: 7420", "  <<: {host: 0.0.0.0}\n  port: 7420")
doc("merge key in place of the field", "yaml", "  host: 127.0.0.1   # loopback only", "  <<: {host: 0.0.0.0}")
doc("merge key of an alias", "yaml", "    web: {backend: plain}", "    web: {<<: *roots}")
lines[-1]["change"] = "x: &roots {writeRoots: [/]}\n" + lines[-1]["change"]
doc("merge list", "yaml", "    web: {backend: plain}", "    web: {<<: [{a: 1}, {writeRoots: [/]}]}")
doc("merge drops deny where merging is not known", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', '<<: {deny: ["exec(rm *)", "exec(curl *)"]}')
doc("alias for a value", "yaml", 'allowFrom: ["@owner"]', "allowFrom: *any")
lines[-1]["change"] = "any: &any ['*']\n" + lines[-1]["change"]
doc("alias for a block", "yaml", "    web: {backend: plain}", "    web: *sys")
lines[-1]["change"] = "s: &sys {writeRoots: [/srv/agent/work]}\n" + lines[-1]["change"]
doc("include tag for a block", "yaml", "    web: {backend: plain}", "    web: !include web.yaml")
doc("env tag in a block", "yaml", "  port: 7420", "  port: !env PORT")
doc("object tag in a block", "yaml", "    mode: allow", "    mode: !!python/object/apply:os.getcwd []")
doc("ordered map tag", "yaml", "    web: {backend: plain}", "    web: !!omap [backend: plain]")
doc("substitution in a block", "yaml", "  port: 7420", "  port: ${PORT}")
doc("reference in a block", "yaml", "    web: {backend: plain}", "    web: {$ref: 'x.yaml'}")
doc("onMutate allow", "yaml", "onMutate: refuse", "onMutate: allow")
doc("onMutate quoted", "yaml", "onMutate: refuse", "onMutate: \"al\\x6cow\"")
doc("onMutate folded", "yaml", "onMutate: refuse", "onMutate: >-\n      allow")
doc("onMutate removed", "yaml", "onMutate: refuse", "x: refuse")
doc("onMutate null", "yaml", "onMutate: refuse", "onMutate:")
doc("onMutate in a list", "yaml", "onMutate: refuse", "onMutate: [allow]")
doc("onMutate tagged", "yaml", "onMutate: refuse", "onMutate: !mode allow")
doc("type of a denial", "yaml", '- "exec(curl *)"', "- yes")
put("yaml: empty", "yaml", Y, "")
put("yaml: comments only", "yaml", Y, "# nothing\n")
put("yaml: a list", "yaml", Y, "- a\n")
put("yaml: broken", "yaml", Y, Y + "x: [\n")
put("yaml: alias of itself", "yaml", Y, Y + "a: &a [*a]\n")
put("yaml: aliases without end", "yaml", Y, Y + "a0: &a0 [x, x]\n" + "".join("a%d: &a%d [%s]\n" % (i, i, ", ".join(["*a%d" % (i - 1)] * 9)) for i in range(1, 12)))
put("yaml: NUL", "yaml", Y, Y + "x: \0\n")
put("yaml: new document with a host", "yaml", None, "server: {host: 127.0.0.1}\n")
put("yaml: nested deep", "yaml", Y, Y + "x: " + "{a: " * 3000 + "{writeRoots: [/]}" + "}" * 3000 + "\n")

doc("host", "json", '"127.0.0.1"', '"0.0.0.0"')
doc("equal key", "json", '"enabled": false,', '"enabled": false, "host": "0.0.0.0",')
doc("equal key escaped", "json", '"enabled": false,', '"enabled": false, "\\u0068ost": "0.0.0.0",')
doc("equal key in capitals", "json", '"enabled": false,', '"enabled": false, "HOST": "0.0.0.0",')
doc("equal block", "json", '"notes": "none"', '"notes": "none", "server": {}')
doc("equal grandparent", "json", '"notes": "none"', '"notes": "none", "tools": {"pinned": []}')
doc("half a surrogate in the key", "json", '"enabled": false,', '"enabled": false, "ho\\ud800st": "0.0.0.0",')
doc("NUL escape in the key", "json", '"enabled": false,', '"enabled": false, "host\\u0000": "0.0.0.0",')
doc("comment", "json", '"host": "127.0.0.1",', '/* "host": "127.0.0.1", */')
doc("nested deep", "json", '"notes": "none"', '"notes": ' + '{"a":' * 3000 + '{"allowFrom":[]}' + "}" * 3000)
doc("nested without end", "json", '"notes": "none"', '"notes": ' + "[" * 20000 + "]" * 20000)
doc("text after the end", "json", '"notes": "none"\n}', '"notes": "none"\n} {"server": {"host": "0.0.0.0"}}')
tree("deny removed", lambda b: b["tools"]["policy"].pop("deny") and None)
tree("server a list", lambda b: b.update(server=[b["server"]]))
tree("block wrapped", lambda b: {"config": b})
tree("writeRoots under another provider", lambda b: b["tools"]["providers"].update(sys2=b["tools"]["providers"].pop("system")))
tree("prototype with a limit", lambda b: b.update({"__proto__": {"host": "0.0.0.0"}}))
put("json: UTF-16 text", "json", JS, "\ufeff" + JS.replace("127.0.0.1", "0.0.0.0"))

doc("dotted key", "toml", "[limits]", 'server.Host = "0.0.0.0"\n[limits]')
lines[-1]["change"] = 'Server.host = "0.0.0.0"\n' + T
doc("host", "toml", "127.0.0.1", "0.0.0.0")
doc("table twice", "toml", "[limits]", '[server]\nhost = "0.0.0.0"\n[limits]')
doc("list of tables", "toml", "[server]", "[[server]]")
doc("inline table", "toml", "[limits]", '[extra]\nx = {allowFrom = ["*"]}\n[limits]')
doc("quoted dotted table", "toml", "[limits]", '["server.host"]\nx = 1\n[limits]')
doc("escaped key", "toml", "[limits]", '[tools.providers.web]\n"write\\u0052oots" = ["/"]\n[limits]')
doc("onMutate", "toml", '"refuse"', "'allow'")
doc("allowFrom of another channel", "toml", 'id = "log"', 'id = "log"\nallowFrom = []')
doc("deny removed", "toml", 'deny = ["exec(rm *)"]\n', "")

doc("host behind a comment", "jsonc", '"host": "127.0.0.1"', '"host": /* "127.0.0.1" */ "0.0.0.0"')
doc("field commented out", "jsonc", '"host": "127.0.0.1", ', '/* "host": "127.0.0.1", */ ')
doc("comment that does not nest", "jsonc", '"port": 7420', '/* /* */ "Host": "0.0.0.0", "port": 7420 /* */')
doc("line separator in a comment", "jsonc", '"port": 7420', '// x\u2028 "host": "0.0.0.0",\n "port": 7420')
doc("carriage return in a comment", "jsonc", '"port": 7420', '// x\r "host": "0.0.0.0",\n "port": 7420')
doc("slashes in text", "jsonc", '"port": 7420', '"url": "//", "host": "0.0.0.0", "port": 7420')
doc("equal key", "jsonc", '"port": 7420', '"host": "0.0.0.0", "port": 7420')
doc("rest in an open comment", "jsonc", '"limits"', '/* "limits"')

patch("add", [{"op": "add", "path": "/server/host", "value": "x"}])
patch("add without the document", [{"op": "add", "path": "/server/host", "value": "x"}], None)
patch("replace", [{"op": "replace", "path": "/tools/policy/deny", "value": []}])
patch("remove", [{"op": "remove", "path": "/tools/policy/deny"}])
patch("remove one denial", [{"op": "remove", "path": "/tools/policy/deny/0"}])
patch("remove the parent", [{"op": "remove", "path": "/tools/untrusted"}])
patch("remove the parent of an unknown document", [{"op": "remove", "path": "/server"}], None)
patch("remove a channel with allowFrom", [{"op": "remove", "path": "/channels/0"}])
patch("move the field", [{"op": "move", "from": "/server/host", "path": "/server/old"}])
patch("move the parent", [{"op": "move", "from": "/server", "path": "/srv"}])
patch("move into place", [{"op": "add", "path": "/x", "value": {"deny": []}}, {"op": "move", "from": "/x", "path": "/tools/policy"}])
patch("copy into place", [{"op": "copy", "from": "/limits/maxSteps", "path": "/server/host"}])
patch("copy an unknown value into a block", [{"op": "copy", "from": "/a", "path": "/server"}], None)
patch("copy a channel", [{"op": "copy", "from": "/channels/0", "path": "/channels/-"}])
patch("copy an unknown channel", [{"op": "copy", "from": "/channels/0", "path": "/channels/-"}], None)
patch("swap allowFrom", [{"op": "move", "from": "/channels/0/allowFrom", "path": "/channels/2/allowFrom"}])
patch("replace the root", [{"op": "replace", "path": "", "value": {}}])
patch("add below a new parent", [{"op": "add", "path": "/x", "value": {"writeRoots": ["/"]}}])
patch("pointer escape", [{"op": "add", "path": "/server~1host", "value": "x"}])
patch("escape in JSON", '[{"op": "add", "path": "/server/h\\u006fst", "value": "x"}]')
patch("case", [{"op": "add", "path": "/Server/HOST", "value": "x"}])
patch("after a test", [{"op": "test", "path": "/limits/maxSteps", "value": 10}, {"op": "add", "path": "/channels/2/allowFrom", "value": []}])
patch("path twice", '[{"op": "add", "path": "/limits/x", "path": "/server/host", "value": 1}]')
patch("op twice", '[{"op": "test", "op": "remove", "path": "/server/host", "value": 1}]')
patch("unknown operation", [{"op": "set", "path": "/server/host", "value": "x"}])
patch("operation in capitals", [{"op": "ADD", "path": "/server/host", "value": "x"}])
patch("no list", {"op": "add", "path": "/server/host", "value": "x"})
patch("no pointer", [{"op": "add", "path": "server.host", "value": "x"}])
patch("onMutate", [{"op": "replace", "path": "/tools/untrusted/onMutate", "value": "Allow"}])
patch("reference", [{"op": "add", "path": "/channels/-", "value": {"$ref": "x"}}])

merge("host", {"server": {"host": "x"}})
merge("host without the document", {"server": {"host": "x"}}, None)
merge("delete the field", {"tools": {"policy": {"deny": None}}})
merge("delete the parent", {"server": None})
merge("delete the parent of an unknown document", {"tools": {"policy": None}}, None)
merge("delete onMutate", {"tools": {"untrusted": {"onMutate": None}}}, None)
merge("replace the parent by text", {"server": "x"})
merge("replace the list of channels", {"channels": [{"id": "tg", "type": "telegram"}]})
merge("empty the list of channels", {"channels": []})
merge("a list for the document", [])
merge("null for the document", None, JS)
lines[-1]["change"] = "null"
merge("key rule", {"plugins": {"x": {"WRITEROOTS": []}}})
merge("key rule deleted", {"plugins": {"x": {"writeRoots": None}}})
merge("equal keys", '{"limits": {}, "limits": {"x": 1}, "server": {"port": 1, "host": "x"}}')
merge("onMutate", {"tools": {"untrusted": {"onMutate": "allow"}}})
merge("prototype", {"__proto__": {"untrusted": {"onMutate": "allow"}}})

def both(name, p, v):
    path(name, p, v)
    path(name + ", in the document", p, v, Y)
for n, p in [("optional chaining", "server?.host"), ("assertion", "server!.host"), ("arrow", "server->host"), ("two colons", "server::host"), ("unquoted brackets", "server[host]"),
             ("backquotes", "server.`host`"), ("tab", "server.\thost"), ("line end", "server.host\r\n"), ("no-break space", "server.\u00a0host"), ("ligature", "server.ho\ufb06"),
             ("circled letter", "server.\u24d7ost"), ("superscript", "server.\u02b0ost"), ("Armenian", "server.\u0570ost"), ("escaped twice", "server%252Fhost"),
             ("wildcard then name", "$.*['host']"), ("escaped first key", "\\u0073erver.host"), ("mixed case", "sErVeR.hOsT"), ("plus position", "tools.policy.deny[+]"), ("last position", "tools.policy.deny[-1]")]:
    both(n, p, "x")
both("the root set to null", "$", None)
both("tools set to null", "tools", None)
both("dotted key in tools", "tools", {"untrusted.onMutate": "allow"})
both("slash key in tools", "tools", {"policy/deny": []})
both("upper-case variable as a key", "tools.policy", {"$DENY": []})
both("key rule null in lists", "a", {"b": [[[{"c": {"WriteRoots": None}}]]]})
for f in ["yaml", "json", "toml", "jsonc", "patch", "merge-patch"]:
    put(f + ": a path and a value", f, BEFORE.get(f, JS), {"path": "server.host", "value": "x"})
    put(f + ": a path and a block", f, BEFORE.get(f, JS), {"path": "tools.policy", "value": {"allow": []}})
for n, after, before in [
    ("merge key dropped", "b: &b {host: x}\nserver:\n  port: 1\n", "b: &b {host: x}\nserver:\n  <<: *b\n  port: 1\n"),
    ("source of a merge changed", "b: &b {host: y}\nserver: {<<: *b}\n", "b: &b {host: x}\nserver: {<<: *b}\n"),
    ("first of two equal keys taken away", "server:\n  host: b\n", "server:\n  host: a\n  host: b\n"),
    ("last of two equal keys taken away", "server:\n  host: a\n", "server:\n  host: a\n  host: b\n"),
    ("equal keys in another order", "server:\n  host: b\n  host: a\n", "server:\n  host: a\n  host: b\n"),
    ("documents in another order", "server: {host: b}\n---\nserver: {host: a}\n", "server: {host: a}\n---\nserver: {host: b}\n"),
    ("last document taken away", "server: {host: a}\n", "server: {host: a}\n---\nserver: {host: b}\n"),
    ("first document taken away", "server: {host: b}\n", "server: {host: a}\n---\nserver: {host: b}\n"),
    ("empty document in front", "---\nnull\n---\n" + Y, Y),
    ("octal", "server: {host: 010}\n", "server: {host: 8}\n"),
    ("sexagesimal", "server: {host: 1:30}\n", "server: {host: 90}\n"),
    ("yes for true", "server: {host: yes}\n", "server: {host: true}\n"),
    ("text for a number", "server: {host: '12e03'}\n", "server: {host: 12e03}\n"),
    ("null removed", "server: {}\n", "server: {host: null}\n")]:
    put("yaml: " + n, "yaml", before, after)
doc("binary value", "yaml", "127.0.0.1 ", "!!binary MTI3LjAuMC4x ")
doc("set of denials", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', 'deny: !!set {"exec(rm *)", "exec(curl *)"}')
doc("value that goes on to a comment sign", "yaml", "127.0.0.1   #", "127.0.0.1#")
doc("literal with its line end", "yaml", "127.0.0.1   # loopback only", "|\n    127.0.0.1")
doc("empty item that takes in the next key for some", "yaml", 'allow: ["exec(git *)"]\n', "allow:\n    -\n")
doc("tag without a space for some", "yaml", "backend: plain", "backend:!x 'plain'")
for t in ["null", "[]", "true", "~", "---\n", "{}\n---\n" + Y]:
    put("yaml: the whole as %r" % t[:9], "yaml", Y, t)
doc("key in another case", "toml", "host =", "Host =")
doc("type of a value", "toml", 'host = "127.0.0.1"', 'host = ["127.0.0.1"]')
doc("key rule behind dots", "toml", "[limits]", "[limits]\nx.writeRoots = []")
patch("insert, then remove the shifted channel", [{"op": "add", "path": "/channels/0", "value": {"id": "z"}}, {"op": "remove", "path": "/channels/1"}])
patch("copy a block with a limit away", [{"op": "copy", "from": "/tools/providers/system", "path": "/x"}])
patch("out and back", [{"op": "move", "from": "/tools", "path": "/t"}, {"op": "move", "from": "/t", "path": "/tools"}])
patch("staged block", [{"op": "add", "path": "/x", "value": {"allow": []}}, {"op": "copy", "from": "/x", "path": "/tools/policy"}])
patch("staged value", [{"op": "add", "path": "/x", "value": "allow"}, {"op": "move", "from": "/x", "path": "/tools/untrusted/onMutate"}])
patch("doubled slash", [{"op": "replace", "path": "//server/host", "value": "x"}])
patch("denial appended", [{"op": "add", "path": "/tools/policy/deny/-", "value": "x"}])

put("format: unknown", "ini", None, "[server]\nhost=x\n")
put("format: empty", "", None, "x")
bypass, lines = lines, []

# ---------------------------------------------------------------- harmless
for p, v in [("server.enabled", True), ("server.port", 8080), ("tools.pinned", ["exec", "file_read"]), ("tools.pinned[0]", "exec"),
             ("tools.policy.allow", ["exec"]), ("tools.policy.mode", "ask"), ("limits.maxSteps", 60), ("model.main.temperature", 0),
             ("channels[0].type", "matrix"), ("channels[1].mode", "poll"), ("tools.providers.web.backend", "other"), ("schedules", [{"at": "09:00"}]),
             ("tools.untrusted.onMutate", "confirm"), ("tools.untrusted.onMutate", "refuse"), ("tools.untrusted.note", "allow"), ("notes", "server.host is 127.0.0.1")]:
    path("set %s %s" % (p, json.dumps(v)), p, v)
    path("set %s %s in the document" % (p, json.dumps(v)), p, v, Y)
for p in ["server.hosts", "server.hostname", "server.host_name", "hooks.server.host", "server.cors.host", "tools.policy.denyList", "policy.deny",
          "tools.deny", "host", "tokenEnv", "onMutate", "deny", "tools.untrusted.onMutateNote", "writeRootsNote", "x.allowFromDocs", "x.fromAllow",
          "tools.policy.allowDeny", "agents[0].server.host", "models[\"server.hostess\"]", "untrusted.onMutate", "x.write_roots_hint"]:
    path("similar name " + p, p, "allow")
for p in ["/limits/maxSteps", "#/limits/maxSteps", "$.limits.maxSteps", "$['limits']['maxSteps']", "limits[\"maxSteps\"]", "channels[?(@.id=='tg')].mode", "channels[*].mode", "$..maxSteps", "/paths/~1etc~1hosts", "files[\"a.b/c\"]"]:
    path("syntax " + p, p, 5)
path("a provider without write roots", "tools.providers", {"web": {"backend": "x"}})
path("channels without allowFrom", "channels", [{"id": "x", "type": "slack"}])
path("a list of tools as text", "tools.pinned", '["exec", "file_read"]')
path("text that mentions the fields", "notes", "writeRoots and allowFrom are protected, and so is server.host")
path("text that looks like a field", "notes", "writeRoots: see the manual for what it means")
path("text with braces", "notes", "{not json at all")
path("a price", "notes", "it costs $5")
path("a variable outside blocks", "model.main.key", "${API_KEY}")
path("a reference outside blocks", "schemas.x", {"$ref": "#/defs/y"})
path("constructor as a key", "people", {"constructor": "Acme", "toString": "x"})
path("a null elsewhere", "notes", None)
put("path: remove elsewhere", "path", Y, {"path": "limits.maxSteps"})
put("path: keys as a list", "path", Y, {"path": ["limits", "maxSteps"], "value": 3})
path("block onMutate confirm", "tools.untrusted", {"onMutate": "confirm"}, Y)
path("deep value", "limits", {"a": {"b": [{"c": {"d": [1, 2, {"e": None}]}}]}})
path("an emoji key", "notes2", {"\U0001f600": 1, "\u00fcber": 2, "\u043f\u0440\u0438\u0432\u0435\u0442": 3})

put("yaml: unchanged", "yaml", Y, Y)
doc("a limit", "yaml", "maxSteps: 10", "maxSteps: 60")
doc("comment removed", "yaml", "   # loopback only", "")
doc("comment added", "yaml", "onMutate: refuse", "onMutate: refuse # not allow")
doc("comment that looks like a field", "yaml", "limits:", "# server: {host: 0.0.0.0}\nlimits:")
doc("host quoted", "yaml", "host: 127.0.0.1 ", "host: '127.0.0.1' ")
doc("key quoted", "yaml", "  host: 127", '  "host": 127')
doc("key escaped", "yaml", "  host: 127", '  "h\\x6fst": 127')
doc("block to flow", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', "deny: ['exec(rm *)', 'exec(curl *)']")
doc("onMutate confirm", "yaml", "onMutate: refuse", "onMutate: confirm")
doc("new channel at the end", "yaml", "    type: file", "    type: file\n  - id: new\n    type: irc")
doc("new channel in front", "yaml", "channels:", "channels:\n  - id: new\n    type: irc")
doc("channel without limits removed", "yaml", "  - id: log\n    type: file\n", "")
doc("channels in another order", "yaml", '  - id: tg\n    type: telegram\n    allowFrom: ["@owner"]\n  - id: ops\n    type: slack\n    allowFrom: [U1, U2]\n', '  - id: ops\n    type: slack\n    allowFrom: [U1, U2]\n  - id: tg\n    type: telegram\n    allowFrom: ["@owner"]\n')
doc("channel type", "yaml", "type: telegram", "type: matrix")
doc("channel id", "yaml", "id: tg", "id: telegram")
doc("a tool pinned", "yaml", "[now]", "[now, exec]")
doc("an allow rule", "yaml", '["exec(git *)"]', '["exec(git *)", "exec(ls *)"]')
doc("a provider", "yaml", "    web: {backend: plain}", "    web: {backend: plain}\n    mail: {user: me}")
doc("anchor and alias", "yaml", 'allowFrom: ["@owner"]', 'allowFrom: &me ["@owner"]')
doc("equal keys elsewhere", "yaml", "limits:", "misc: 1\nmisc: 2\nlimits:")
doc("merge key elsewhere", "yaml", "  maxSteps: 10", "  <<: {maxTime: 5}\n  maxSteps: 10")
doc("tag elsewhere", "yaml", "notes: none", "notes: !mine none")
doc("variable elsewhere", "yaml", "notes: none", "notes: ${NOTES}")
doc("core tag", "yaml", "type: file", "type: !!str file")
put("yaml: document marks", "yaml", Y, "%YAML 1.2\n---\n" + Y + "...\n")
put("yaml: trailing mark", "yaml", Y, Y + "---\n")
put("yaml: byte order mark", "yaml", Y, "\ufeff" + Y)
put("yaml: Windows lines", "yaml", Y, Y.replace("\n", "\r\n"))
put("yaml: as JSON", "yaml", Y, JS)
put("yaml: as JSON on one line", "yaml", Y, json.dumps(BASE))
put("yaml: keys sorted", "yaml", Y, json.dumps(BASE, sort_keys=True))
put("yaml: new document without limits", "yaml", None, "limits: {maxSteps: 5}\ntools: {pinned: [exec]}\n")
put("yaml: new document with confirm", "yaml", None, "tools: {untrusted: {onMutate: confirm}}\n")
put("yaml: first content", "yaml", "", "limits: {maxSteps: 5}\n")
put("yaml: line separator in text", "yaml", Y, Y + "x: 'a\u2028b'\n")
put("yaml: nested", "yaml", Y, Y + "x: " + "[" * 200 + "]" * 200 + "\n")
put("yaml: multi-line text", "yaml", Y, Y + "x: |\n  server:\n    host: 0.0.0.0\n")
put("json: minified", "json", JS, json.dumps(BASE, separators=(",", ":")))
put("json: indented", "json", JS, json.dumps(BASE, indent=8))
put("json: keys sorted", "json", JS, json.dumps(BASE, sort_keys=True))
put("json: keys escaped", "json", JS, JS.replace('"host"', '"h\\u006fst"'))
doc("a limit", "json", '"maxSteps": 10', '"maxSteps": 11')
doc("equal keys elsewhere", "json", '"notes": "none"', '"notes": "none", "notes": "some"')
doc("text that mentions a field", "json", '"notes": "none"', '"notes": "{\\"server\\": {\\"host\\": \\"0.0.0.0\\"}}"')
tree("a tool", lambda b: b["tools"]["pinned"].append("exec"))
tree("a channel", lambda b: b["channels"].insert(0, {"id": "x"}))
tree("a prototype of nothing", lambda b: b.update({"__proto__": {"color": "red"}}))
tree("similar keys", lambda b: b["server"].update(hostess="x", **{"host-header": "y"}))
tree("onMutate confirm", lambda b: b["tools"]["untrusted"].update(onMutate="confirm"))
doc("a limit", "toml", "maxSteps = 10", "maxSteps = 11")
doc("quotes", "toml", '"127.0.0.1"', "'127.0.0.1'")
doc("dotted layout", "toml", '[tools.untrusted]\nonMutate = "refuse"\n', "")
lines[-1]["change"] = 'tools.untrusted.onMutate = "refuse"\n' + lines[-1]["change"].replace("[tools]\npinned = [\"now\"]\n", "").replace('notes = "none"', 'notes = "none"\ntools.pinned = ["now"]')
doc("inline table", "toml", '[limits]\nmaxSteps = 10', "[limits.x]\ny = {z = 1}")
doc("a channel", "toml", "[limits]", "[[channels]]\nid = \"new\"\n[limits]")
doc("comment", "toml", "[limits]", "# host = \"0.0.0.0\"\n[limits]")
doc("a limit", "jsonc", '"maxSteps": 10', '"maxSteps": 11')
doc("comments removed", "jsonc", "  // The agent.\n", "")
doc("comment added", "jsonc", '"port": 7420', '"port": 7420 // "host": "0.0.0.0"\n')
doc("comment in the middle", "jsonc", '"host": "127.0.0.1"', '"host": /* loopback */ "127.0.0.1"')
doc("trailing commas", "jsonc", '["exec(rm *)"]', '["exec(rm *)",]')
patch("tests only", [{"op": "test", "path": "/server/host", "value": "127.0.0.1"}])
patch("nothing", [])
patch("add", [{"op": "add", "path": "/limits/maxTime", "value": 5}])
patch("add without the document", [{"op": "add", "path": "/limits/maxTime", "value": 5}], None)
patch("replace", [{"op": "replace", "path": "/limits/maxSteps", "value": 5}])
patch("remove", [{"op": "remove", "path": "/limits/maxSteps"}])
patch("move", [{"op": "move", "from": "/limits/maxSteps", "path": "/limits/steps"}])
patch("copy", [{"op": "copy", "from": "/model/main", "path": "/model/second"}])
patch("insert a channel", [{"op": "add", "path": "/channels/0", "value": {"id": "new"}}])
patch("remove a channel without limits", [{"op": "remove", "path": "/channels/2"}])
patch("append a tool", [{"op": "add", "path": "/tools/pinned/-", "value": "exec"}])
patch("onMutate confirm", [{"op": "replace", "path": "/tools/untrusted/onMutate", "value": "confirm"}])
patch("of a YAML document", [{"op": "replace", "path": "/limits/maxSteps", "value": 5}], Y)
patch("copy a limit out to notes", [{"op": "copy", "from": "/server/port", "path": "/notes"}])
merge("limits", {"limits": {"maxSteps": 5}})
merge("limits without the document", {"limits": {"maxSteps": 5}}, None)
merge("server enabled", {"server": {"enabled": True}})
merge("server enabled without the document", {"server": {"enabled": True}}, None)
merge("delete elsewhere", {"notes": None})
merge("empty", {})
merge("a provider removed", {"tools": {"providers": {"web": None}}})
merge("onMutate confirm", {"tools": {"untrusted": {"onMutate": "confirm"}}})

for n, p, v in [("prose", "notes", "writeRoots: fixed"), ("prose of several lines", "model.prompt", "Facts:\nallowFrom: set by the owner\n"), ("prose with a list", "model.prompt", "Rules:\n- never touch writeRoots\n"),
                ("a schema", "$schema", "https://example.com/s.json"), ("a name that is a slash path elsewhere", 'files["server/host"]', 1), ("another word of onMutate", "tools.untrusted.onMutate", "ask"),
                ("confirm in capitals", "tools.untrusted.onMutate", "CONFIRM"), ("any depth elsewhere", "$..temperature", 1), ("another alphabet", "\u043d\u0430\u0441\u0442\u0440\u043e\u0439\u043a\u0438.\u0445\u043e\u0441\u0442", 1),
                ("names the other way round", "host.server", "x"), ("a template in notes", "notes", "{{x}} ${Y}"), ("an empty map elsewhere", "limits", {}), ("a price in a block", "server.banner", "costs $5"),
                ("wildcard elsewhere", "limits[*]", 1), ("Windows path", "paths.C:\\work", "x"), ("onRead allow", "tools.untrusted.onRead", "allow")]:
    path(n, p, v)
    path(n + ", in the document", p, v, Y)
for f in ["yaml", "json", "toml", "jsonc", "patch", "merge-patch"]:
    put(f + ": a path and a value", f, BEFORE.get(f, JS), {"path": "limits.maxSteps", "value": 3})
for f in ["yaml", "json", "toml", "jsonc"]:
    put(f + ": lines of Windows and a byte order mark", f, BEFORE[f], "\ufeff" + BEFORE[f].replace("\n", "\r\n"))
for n, after, before in [
    ("merge key kept", "b: &b {host: x}\nserver:\n  <<: *b\n  port: 2\n", "b: &b {host: x}\nserver:\n  <<: *b\n  port: 1\n"),
    ("merge key written out", "server:\n  host: x\n  port: 1\n", "b: &b {host: x}\nserver:\n  <<: *b\n  port: 1\n"),
    ("equal keys kept", "server:\n  host: a\n  host: b\n  port: 2\n", "server:\n  host: a\n  host: b\n  port: 1\n"),
    ("one of several documents", "a: 2\n---\nserver: {host: x}\n", "a: 1\n---\nserver: {host: x}\n"),
    ("yes kept", "server: {host: yes, port: 2}\n", "server: {host: yes, port: 1}\n"),
    ("spelling of null", "server: {host: ~}\n", "server:\n  host:\n"),
    ("base of a number elsewhere", "a: 0x10\nserver: {host: 0x10}\n", "a: 16\nserver: {host: 0x10}\n"),
    ("version directive", "%YAML 1.2\n---\n" + Y, Y),
    ("carriage returns alone", Y.replace("\n", "\r"), Y)]:
    put("yaml: " + n, "yaml", before, after)
doc("folded value", "yaml", "127.0.0.1   # loopback only", ">-\n    127.0.0.1")
doc("explicit key", "yaml", "  host: 127.0.0.1   # loopback only", "  ? host\n  : 127.0.0.1")
doc("alias for the same value", "yaml", 'deny:\n      - "exec(rm *)"\n      - "exec(curl *)"', "deny: *d")
lines[-1]["change"] = 'd: &d ["exec(rm *)", "exec(curl *)"]\n' + lines[-1]["change"]
doc("odd plain keys", "yaml", "notes: none", "on: 1\nyes: 2\n1:30: x\n0x1F: y\nnull: z")
doc("set and binary elsewhere", "yaml", "notes: none", "notes: [!!set {a, b}, !!binary aGVsbG8=]")
doc("text with fields in it", "yaml", "notes: none", "notes: |\n  server:\n    host: 0.0.0.0\n  writeRoots: [/]")
doc("text of several lines", "toml", 'host = "127.0.0.1"', 'host = """127.0.0.1"""')
doc("escapes", "toml", '"127.0.0.1"', '"\\u0031\\u00327.0.0.1"')
doc("text with fields in it", "toml", 'notes = "none"', 'notes = """\n[server]\nhost = "x"\n"""')
tree("schema", lambda b: b.update({"$schema": "https://example.com/s.json"}))
tree("channels the other way round", lambda b: b["channels"].reverse())
tree("channels the other way round, one changed", lambda b: (b["channels"].reverse(), b["channels"][2].update(mode="x")) and None)
patch("tests of limits", [{"op": "test", "path": "/server/host", "value": "x"}, {"op": "test", "path": "/channels/0/allowFrom", "value": []}])
patch("value of a key rule to another name", [{"op": "copy", "from": "/tools/providers/system/writeRoots", "path": "/notes"}])
patch("channel without limits to the front", [{"op": "move", "from": "/channels/2", "path": "/channels/0"}])
patch("channel in the middle", [{"op": "add", "path": "/channels/1", "value": {"id": "z", "type": "q"}}])
patch("notes into a block", [{"op": "move", "from": "/notes", "path": "/server/banner"}])
merge("empty blocks", {"tools": {"policy": {}, "untrusted": {}}, "server": {}})

for name, out in [("bypass", bypass), ("harmless", lines)]:
    ids = [l["id"] for l in out]
    assert len(ids) == len(set(ids)), [i for i in ids if ids.count(i) > 1]
    with open("%s/%s.jsonl" % (sys.argv[1], name), "w") as f:
        for l in out:
            f.write(json.dumps(l) + "\n")
    print(name, len(out))
