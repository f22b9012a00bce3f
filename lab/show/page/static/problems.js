// What the lab says of a move that cannot be made, in the page's language. It says it in English.
import { speaks } from "./words.js";

const MOVES = { "take a step": "dar un paso", "start a run": "empezar una corrida", "run again": "correr otra vez",
  "have its connection cut": "perder su conexión", "be killed": "ser matada", "be frozen": "congelarse",
  "be thawed": "descongelarse" };
const STATES = { dead: "muerta", frozen: "congelada", finished: "terminada", "not started": "dormida",
  "running its own code": "corriendo su propio código" };

const state = (text) => STATES[text] ?? text
  .replace(/^held at /, "detenida en ").replace(/^waiting for /, "esperando a ").replace(/^running /, "corriendo ");

const SPANISH = [
  [/^(\w) cannot (.+): it is (.+)\.$/, (_, who, what, how) => `${who} no puede ${MOVES[what] ?? what}: está ${state(how)}.`],
  [/^Replicas that can take a step now: (.+)\.$/,
    (_, who) => (who === "none" ? "Ninguna réplica puede dar un paso ahora." : `Ahora pueden dar un paso: ${who}.`)],
  [/^There is no replica (\w)\.$/, "No hay réplica $1."],
  [/^The replicas of this run are (.+)\.$/, "Las réplicas de esta corrida son $1."],
  [/^(\w) never came to “(.+)”; its run ended: .+$/, "$1 nunca llegó a “$2”: su corrida terminó."],
  [/^Its statements were: (.*)\.$/, "Sus sentencias fueron: $1."],
  [/^“(.+)” is not a time\.$/, "“$1” no es una hora."],
  [/^Write (@.+) or (@.+)\.$/, "Escribe $1 o $2."],
  [/^“(.+)” is not a move of a schedule\.$/, "“$1” no es un movimiento de una secuencia."],
  [/^Write (A, .+) or \+condition\.$/, "Escribe $1 o +condición."],
  [/^This time Postgres woke another replica first, so the run ends before (.+)\.$/,
    "Esta vez Postgres despertó primero a otra réplica, así que la corrida acaba antes de $1."],
  [/^Which of several waiters is first is its choice\. Go on from here\.$/,
    "Cuál de varios que esperan va primero lo decide él. Sigue desde aquí."],
  [/^There is no condition “(.+)”\.$/, "No hay condición “$1”."],
  [/^Known: (.+)\.$/, "Las que hay: $1."],
  [/^“(.*)” are not the letters of one to (\d+) replicas\.$/, "“$1” no son las letras de una a $2 réplicas."],
  [/^Name them A, B, C, …$/, "Llámalas A, B, C, …"],
];

export function said(text) {
  const line = text.split("\n")[0];
  const found = speaks() === "es" && SPANISH.find(([english]) => english.test(line));
  return found ? line.replace(...found) : line;
}
