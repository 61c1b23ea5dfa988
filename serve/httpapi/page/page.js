"use strict";

const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem("dreamguard-token") || "";
let timer = 0;
let quiet = 0; // until when keys answer nothing: a call that has just got focus was not read yet

// make builds an element; texts become text, never markup.
function make(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k === "onclick") e.addEventListener("click", v);
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children);
  return e;
}

function draw(name, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

// plain makes visible what could hide or turn around a text that a person agrees to.
function plain(s) {
  return s.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|\udb40[\udc00-\udfff]/g,
    (c) => [...c].map((x) => "\\u{" + x.codePointAt(0).toString(16) + "}").join(""));
}

async function api(method, path, body) {
  const r = await fetch(path, {
    method, cache: "no-store", credentials: "omit",
    headers: { Authorization: "Bearer " + token, ...(body ? { "Content-Type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : undefined,
  });
  const answer = await r.json().catch(() => ({}));
  if (!r.ok) {
    const e = new Error((answer.error && answer.error.message) || "the service answered " + r.status);
    e.status = r.status;
    throw e;
  }
  return answer;
}

function say(text, bad) {
  $("status").textContent = text;
  $("status").className = bad ? "bad" : "";
}

function show(connected) {
  $("enter").hidden = connected;
  $("work").hidden = !connected;
  $("leave").hidden = !connected;
}

function level(name, x) {
  return x === null ? name + " off" : `${name} from ${x.toFixed(3)}`;
}

function left(expires) {
  const s = Math.max(0, Math.round((Date.parse(expires) - Date.now()) / 1000));
  return s + " s left";
}

async function answer(hold, how) {
  const li = $("hold-" + hold.id);
  for (const b of li.querySelectorAll("button")) b.disabled = true;
  $("said").textContent = "";
  try {
    await api("POST", "/v1/holds/" + encodeURIComponent(hold.id) + "/" + how, { hash: hold.hash });
  } catch (e) {
    $("said").textContent = plain(e.message);
  }
  const next = li.nextElementSibling || li.previousElementSibling;
  li.remove();
  if (next) {
    quiet = Date.now() + 700;
    next.focus();
  }
  refresh();
}

function holdItem(h) {
  const v = h.verdict;
  const li = make("li", { id: "hold-" + h.id, tabindex: "0", "aria-label": "held call of " + plain(h.tool) },
    make("h3", {}, plain(h.tool)),
    make("p", { class: "why" }, plain(h.reason)),
    make("p", { class: "small" }, `risk ${v.scores.risk.toFixed(3)}, ${level("HOLD", v.thresholds.hold)}; hazard ${v.scores.hazard.toFixed(3)}, ${level("BLOCK", v.thresholds.block)}; reasons: ${v.reasons.join(", ") || "none"}`),
    make("pre", { tabindex: "0", "aria-label": "arguments" }, plain(h.arguments)));
  if (h.text) li.append(make("p", {}, "The agent says: " + plain(h.text)));
  if (h.task) li.append(make("p", {}, "The task: " + plain(h.task)));
  li.append(
    make("p", { class: "small" }, `session ${h.session}${h.label ? " (" + plain(h.label) + ")" : ""} of ${h.owner}, `, make("span", { class: "left" }, left(h.expires))),
    make("div", { class: "buttons" },
      make("button", { type: "button", class: "approve", onclick: () => answer(h, "approve") }, "Approve"),
      make("button", { type: "button", class: "deny", onclick: () => answer(h, "deny") }, "Deny")));
  li.addEventListener("keydown", (e) => {
    if (Date.now() < quiet || e.ctrlKey || e.altKey || e.metaKey || e.repeat || li.querySelector("button").disabled) return;
    if (e.key === "a") answer(h, "approve");
    if (e.key === "d") answer(h, "deny");
  });
  return li;
}

// chart draws the scores of a session with both thresholds.
function chart(s) {
  const svg = draw("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": "scores of the last calls" });
  const y = (p) => (98 - 96 * p).toFixed(2);
  const x = (i) => (s.scores.length < 2 ? 50 : (100 * i) / (s.scores.length - 1)).toFixed(2);
  for (const [name, level] of [["hold", s.hold_at], ["block", s.block_at]]) {
    if (level !== null) svg.append(draw("line", { class: name, x1: 0, x2: 100, y1: y(level), y2: y(level) }));
  }
  for (const name of ["hazard", "risk"]) {
    let points = s.scores.map((p, i) => x(i) + "," + y(p[name]));
    if (points.length === 1) points = ["0," + y(s.scores[0][name]), "100," + y(s.scores[0][name])];
    svg.append(draw("polyline", { class: name, points: points.join(" ") }));
  }
  return svg;
}

function sessionItem(s) {
  const last = s.scores[s.scores.length - 1];
  const li = make("li", { id: "session-" + s.session },
    make("h3", {}, s.label ? plain(s.label) : s.session),
    make("p", {}, plain(s.instruction) || "no task"));
  if (last) li.append(chart(s), make("p", { class: "small" },
    make("span", { class: "t-risk" }, `risk ${last.risk.toFixed(3)}`), `, hazard ${last.hazard.toFixed(3)} (dotted); `,
    make("span", { class: "t-hold" }, level("HOLD", s.hold_at)), ", ", make("span", { class: "t-block" }, level("BLOCK", s.block_at))));
  li.append(make("p", { class: "small" }, `step ${s.step}, ${s.refusals} refused, last verdict ${last ? s.last : "none"}, of ${s.owner}, mode ${s.mode}`));
  return li;
}

async function refresh() {
  clearTimeout(timer);
  if (!token) return;
  try {
    const [holds, sessions] = await Promise.all([api("GET", "/v1/holds?state=pending"), api("GET", "/v1/sessions")]);
    const ids = new Set(holds.holds.map((h) => "hold-" + h.id));
    for (const li of [...$("holds").children]) if (!ids.has(li.id)) li.remove();
    for (const h of holds.holds) {
      const li = $("hold-" + h.id); // what has focus stays where it is
      if (li) li.querySelector(".left").textContent = left(h.expires);
      else $("holds").append(holdItem(h));
    }
    $("count").textContent = "(" + holds.holds.length + ")";
    document.title = (holds.holds.length ? "(" + holds.holds.length + ") " : "") + "DreamGuard";
    $("sessions").replaceChildren(...sessions.sessions.map(sessionItem));
    show(true);
    say(`${sessions.total} session${sessions.total === 1 ? "" : "s"}, ${holds.holds.length} held`, false);
  } catch (e) {
    say(e.message || "the service cannot be reached", true);
    if (e.status === 401 || e.status === 403) {
      leave();
      say(e.message, true);
      return;
    }
  }
  timer = setTimeout(refresh, 2000);
}

function leave() {
  token = "";
  sessionStorage.removeItem("dreamguard-token");
  clearTimeout(timer);
  $("holds").replaceChildren();
  $("sessions").replaceChildren();
  show(false);
  say("Not connected", false);
  $("token").focus();
}

$("enter").addEventListener("submit", (e) => {
  e.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  sessionStorage.setItem("dreamguard-token", token);
  refresh();
});
$("leave").addEventListener("click", leave);
if (token) refresh();
