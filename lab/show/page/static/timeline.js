// The timeline: a lane a replica, as in the columns above it; time runs downwards, a row a statement.
import { $, set, svg } from "./dom.js";
import { t } from "./words.js";

const SIGNS = { commit: "◆", rollback: "◇", kill: "✖", cut: "✂", freeze: "❄", thaw: "▷" };

export function timeline(state) {
  const { timeline: lanes, replicas } = state;
  const box = $("#timeline");
  const inner = $("div", box);
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const row = 1.75 * rem, gutter = 3.4 * rem, top = 1.8 * rem;
  const width = Math.max(box.clientWidth - 4, 280);
  const lane = (width - gutter) / replicas.length;
  const left = (letter) => gutter + lane * replicas.findIndex((r) => r.letter === letter);
  // The first replica has the first colour, whatever its letter is.
  const of = (letter) => `of-${"ABCDEF"[replicas.findIndex((r) => r.letter === letter)]}`;
  const y = (x) => top + x * row;
  const font = Math.max(11, 0.82 * rem);
  const fits = (whole, room, shorter) => {
    const most = Math.floor(room / (font * 0.61));
    const text = whole.length > most && shorter ? shorter : whole;
    return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
  };
  const height = y(lanes.width) + row * 0.6;
  const drawn = svg("svg", { width, height, role: "img", "aria-label": spoken(state), "font-size": font });
  drawn.append(hatching());
  for (const { letter } of replicas) {
    drawn.append(text(left(letter) + lane / 2, top - 0.55 * rem, letter, "name"),
      svg("line", { x1: left(letter), x2: left(letter), y1: top, y2: height, class: "border" }));
  }
  for (const [x, said] of lanes.clocks) {
    const shown = /^\d{4}-/.test(said) ? said.slice(11, 16) : said;
    drawn.append(svg("line", { x1: 0, x2: width, y1: y(x), y2: y(x), class: "clock" }),
      text(gutter + 6, y(x) - 3, shown, "clock-text"));
  }
  lanes.ticks.forEach(([x], index) => drawn.append(text(gutter - 8, y(x) + font / 3, String(index + 1), "number")));
  for (const band of lanes.bands) {
    const at = left(band.replica) + (band.what === "alive" ? 3 : 9);
    drawn.append(svg("rect", { x: at, y: y(band.start), width: band.what === "alive" ? 3 : 7,
      height: Math.max(2, (band.end - band.start) * row), class: `band ${band.what} ${of(band.replica)}` },
      title(band.what === "alive" ? "" : t("holdsLock"))));
  }
  for (const bar of lanes.bars) drawn.append(block(bar));
  for (const mark of lanes.marks) {
    const at = left(mark.replica) + 20, middle = y(mark.x);
    const bad = lanes.bad[mark.seq];
    const name = mark.kind === "thaw" || mark.kind === "freeze" || mark.kind === "cut" || mark.kind === "kill"
      ? t(`${mark.kind}!`) : mark.kind.toUpperCase();
    drawn.append(svg("g", { class: `mark ${mark.kind} ${of(mark.replica)}${bad ? " bad" : ""}` },
      text(at, middle + font * 0.36, `${SIGNS[mark.kind]} ${name}`, "mark-text")));
    for (const bar of lanes.bars) {
      if (bar.look === "waiting" && bar.replica !== mark.replica && Math.abs(bar.end - mark.x) < 0.01) {
        const right = left(bar.replica) > left(mark.replica);
        drawn.append(svg("line", { x1: right ? at + (name.length + 3) * font * 0.61 : at - 6,
          x2: right ? left(bar.replica) + 20 : left(bar.replica) + lane - 6, y1: middle, y2: middle, class: "release" }));
      }
    }
  }
  inner.replaceChildren(drawn);
  box.scrollTop = box.scrollHeight;

  function block(bar) {
    const x = left(bar.replica) + 20, wide = lane - 26;
    // What ends a wait takes half a row by its time; it is drawn over the end of the wait.
    const from = y(Math.min(bar.start, bar.end - 1)) + 2, tall = y(bar.end) - from - 2;
    const bad = lanes.bad[bar.seq];
    const note = bar.look === "waiting" ? t("waiting!", bar.note.replace("waits for ", ""))
      : bar.look === "no-row" ? (["false", "nil"].includes(bar.note) ? bar.note : t("noRow"))
        : bar.look === "undone" ? [bar.note, t("undone")].filter(Boolean).join(", ") : bar.look === "lost" ? t("look:lost") : bar.note;
    const label = bar.look === "waiting" ? `◴ ${note}` : note ? `${bar.text} → ${note}` : bar.text;
    const badge = bad ? 2.3 * rem : 0;
    const group = svg("g", { class: `bar look-${bar.look} ${of(bar.replica)}${bad ? " bad" : ""}` },
      svg("rect", { x, y: from, width: wide, height: tall, rx: 3 }),
      text(x + 6, from + Math.min(tall, row) / 2 + font * 0.34, fits(label, wide - 10 - badge, note && `${verb(bar.text)} → ${note}`), "label"),
      title(label));
    if (bad) {
      group.append(svg("rect", { class: bad === "1×" ? "badge first" : "badge", x: x + wide - badge, y: from, width: badge, height: tall, rx: 3 }),
        text(x + wide - badge / 2, from + tall / 2 + font * 0.36, bad,
        bad === "1×" ? "badge-text first" : "badge-text"));
    }
    return group;
  }
}

// "SET NX redis://key" does not fit: "SET NX" may, or "INSERT" of "INSERT notifications".
const verb = (label) => label.includes("://") ? label.replace(/ \S+:\/\/.*$/, "") : label.split(" ")[0];

const text = (x, y, said, kind) => {
  const element = svg("text", { x, y, class: kind });
  element.textContent = said;
  return element;
};

const title = (said) => {
  const element = svg("title");
  element.textContent = said;
  return element;
};

function hatching() {
  const pattern = svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" }, svg("rect", { width: 7, height: 7, class: "paper" }),
  svg("line", { x1: 0, x2: 0, y1: 0, y2: 7, class: "hatching" }));
  return svg("defs", {}, pattern);
}

function spoken(state) {
  const bars = state.timeline.bars.length, ends = state.timeline.marks.length;
  set($("#timeline"), { "data-bars": String(bars) });
  return `${t("timeline")}: ${bars} + ${ends}`;
}
