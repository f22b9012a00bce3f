// The page: it gets the whole state after every order, from whichever browser the order came.
import { columns } from "./columns.js";
import { $, h, set } from "./dom.js";
import { note, phone, tables, tried, verdict } from "./panels.js";
import { timeline } from "./timeline.js";
import { said } from "./problems.js";
import { speak, speaks, t, told } from "./words.js";

let state = null;
let stages = [];
let chosen = "A";

// Orders go one after another, and each is worked out on what the one before has left: `what` may
// be a function, which gives nothing where there is nothing left to do.

let line = Promise.resolve();
let arrived = () => {};

function order(name, what = {}) {
  line = line.then(() => send(name, typeof what === "function" ? what() : what)).catch(console.error);
}

async function send(name, what) {
  if (!what) return;
  if (name === "move" && /^[A-Z]/.test(what.text)) chosen = what.text[0];
  try {
    const answer = await fetch("order", { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ order: name, ...what }) });
    const version = Number(answer.headers.get("Version"));
    while (state.version < version) await new Promise((resolve) => { arrived = resolve; });
  } catch { /* the event source says that the connection is lost */ }
}

// What is on the screen

function render() {
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-label]")) set(element, { "aria-label": t(element.dataset.label) });
  document.documentElement.lang = speaks();
  document.title = t("title");
  $("#language").textContent = t("language");
  $("#help dl").replaceChildren(...t("help").flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]));
  for (const [id, key] of [["undo", "⌫"], ["restart", "⇱"]]) $(`#${id}`).textContent = `${key} ${t(id)}`;
  if (!state) return;
  problem();
  if (!state.stage) return;
  if (!state.letters.includes(chosen)) chosen = state.letters[0];
  story();
  columns(state, chosen, order, cast);
  verdict(state);
  phone(state);
  tables(state);
  tried(state, () => order("count"));
  note(state);
  timeline(state);  // last: it is scrolled to its end, in the room that the others leave
  set($("#undo"), { "aria-disabled": state.moves ? null : "true" });
  if (document.activeElement !== $("#schedule")) $("#schedule").value = state.schedule;
}

function problem() {
  const { problem } = state;
  set($("#problem"), { hidden: !problem });
  $("#problem").textContent = problem ? `${said(problem.what)} ${said(problem.remedy)}` : "";
}

function story() {
  options("#stage", stages.map((s) => [String(s.number), `${String(s.number).padStart(2, "0")} ${told(s, "title")}`]),
    String(state.stage.number));
  options("#scenario", [["", t("scenario")], ...state.scenarios.map((s) => [s.name, `${s.name}: ${told(s, "title")}`])], "");
  options("#isolation", state.isolations.map((level) => [level, level.toUpperCase()]), state.isolation);
  set($("#isolation"), { hidden: state.isolations.length < 2 });
  options("#world", [["", t("world")], ...state.conditions.map((name) => [name, `+${name}`])], "");
  set($("#world"), { hidden: !state.conditions.length });
  $("#many").value = String(state.letters.length);
  $("#story").textContent = told(state.stage, "story");
  const time = state.clock.slice(11, 16);
  const day = new Date(`${state.clock.slice(0, 10)}T12:00Z`).toLocaleDateString(speaks(), { weekday: "short", timeZone: "UTC" });
  $("#clock").textContent = `${day} ${time}`;
  $("#minute").textContent = t("minute");
}

function options(selector, pairs, value) {
  const select = $(selector);
  const made = JSON.stringify(pairs);
  if (select.dataset.made !== made) {
    select.replaceChildren(...pairs.map(([key, text]) => h("option", { value: key, title: text }, text)));
    select.dataset.made = made;
  }
  select.value = value;
}

function announce() {
  const lines = (state.said ?? []).slice(-4).map((event) => {
    const what = ["statement", "request"].includes(event.kind) ? event.label : t(`${event.kind}!`);
    const how = event.outcome === "waiting" ? t("waiting!", event.waits_for.join(", ")) : event.outcome;
    return `${event.letter} ${what} ${how}`.trim();
  });
  if (lines.length) $("#said").textContent = lines.join(". ");
}

// News from the server

function listen() {
  const source = new EventSource("events");
  source.addEventListener("state", (event) => {
    state = { ...(state?.stage ? state : {}), ...JSON.parse(event.data) };
    set($("#lost"), { hidden: true });
    document.body.dataset.busy = "";
    render();
    announce();
    document.body.dataset.version = state.version;
    arrived();
  });
  source.addEventListener("progress", (event) => {
    document.body.dataset.busy = event.data;
    $("#note").textContent = t("counting", event.data);
  });
  source.addEventListener("error", () => {
    set($("#lost"), { hidden: false });
    $("#lost").textContent = t("gone");
    arrived();
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 1000);
  });
}

// Buttons and keys

const clicks = {
  undo: () => order("undo", () => state.moves && {}),
  restart: () => order("restart"),
  failing: () => order("failing"),
  minute: aMinute,
  copy: async () => {
    const roles = Object.entries(state.roles).map(([letter, program]) => `${letter}=${program}`).join(" ");
    const cast = [["EVERYONE", state.everyone !== state.programs[0] && state.everyone], ["ROLES", roles && `"${roles}"`],
      ["ISOLATION", state.isolation !== state.usual && `"${state.isolation}"`]].filter(([, value]) => value);
    const text = [`make replay-${state.stage.number}`, ...cast.map((pair) => pair.join("=")),
      `SCHEDULE="${state.schedule}"`].join(" ");
    await navigator.clipboard.writeText(text).catch(() => {});
    $("#note").textContent = `${t("copied")}: ${text}`;
  },
  language: () => { speak(speaks() === "en" ? "es" : "en"); render(); },
  projector: () => projector(document.documentElement.classList.toggle("projector")),
  keys: () => set($("#keys"), { "aria-expanded": String(!($("#help").hidden = !$("#help").hidden)) }),
};
for (const [id, act] of Object.entries(clicks)) $(`#${id}`).addEventListener("click", act);

$("#stage").addEventListener("change", (event) => order("choose", { number: Number(event.target.value) }));
$("#many").addEventListener("change", (event) => order("cast", {
  ...cast(), letters: "ABCDEF".slice(0, Number(event.target.value)) }));
$("#isolation").addEventListener("change", (event) => order("cast", { ...cast(), isolation: event.target.value }));
$("#scenario").addEventListener("change", (event) => event.target.value && order("scenario", { name: event.target.value }));
$("#world").addEventListener("change", (event) => event.target.value && order("move", { text: `+${event.target.value}` }));
$("#play").addEventListener("submit", (event) => {
  event.preventDefault();
  $("#schedule").blur();
  order("play", { text: $("#schedule").value });
});

function cast() {
  return { letters: state.letters, everyone: state.everyone, roles: state.roles, isolation: state.isolation };
}

function projector(on) {
  localStorage.setItem("projector", on ? "on" : "");
  set($("#projector"), { "aria-pressed": String(on) });
  render();
}

function aMinute() {
  order("move", () => {
    const [hours, minutes] = state.clock.slice(11, 16).split(":").map(Number);
    const later = hours * 60 + minutes + 1;
    return { text: `@${String(Math.floor(later / 60) % 24).padStart(2, "0")}:${String(later % 60).padStart(2, "0")}` };
  });
}

const keys = { ",": "toCommit", ".": "toEnd", Delete: "kill", "-": "cutBefore", "+": "cutAfter" };
const others = { Backspace: "undo", Home: "restart", t: "minute", "?": "keys" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !state?.replicas) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const letter = event.key.length === 1 && event.key.toUpperCase();
  const replica = state.replicas.find((r) => r.letter === letter);
  const column = $(`#replica-${chosen}`);
  if (replica && event.shiftKey) {
    chosen = letter;
    render();
  } else if (replica) {
    if (!event.repeat) $(`#replica-${letter} .step`).click();
  } else if (keys[event.key]) $(`.more.${keys[event.key]}`, column).click();
  else if (event.key === "*") $(column.dataset.state === "frozen" ? ".step" : ".more.freeze", column).click();
  else if (others[event.key]) $(`#${others[event.key]}`).click();
  else if (event.key === "/") $("#schedule").focus();
  else return;
  event.preventDefault();
});

// Whoever has chosen from a list with the mouse goes on with the keys.
let mouse = false;
for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => { mouse = kind === "pointerdown"; }, true);
document.addEventListener("change", (event) => mouse && event.target.tagName === "SELECT" && event.target.blur());

addEventListener("resize", () => state?.timeline && timeline(state));
if (localStorage.getItem("projector")) {
  document.documentElement.classList.add("projector");
  set($("#projector"), { "aria-pressed": "true" });
}
render();
stages = await (await fetch("stages")).json();
listen();
