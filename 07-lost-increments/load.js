// The same load with k6: k6 run -e URL=http://127.0.0.1:PORT/atomic_update/use?secret=sk-ana \
//                               -e USERS=100 -e REQUESTS=100 load.js
import http from "k6/http";
import { Counter } from "k6/metrics";

const ok = new Counter("answered");

export const options = {
  scenarios: {
    use: {
      executor: "shared-iterations",
      vus: Number(__ENV.USERS || 100),
      iterations: Number(__ENV.REQUESTS || 100),
      maxDuration: "2m",
    },
  },
};

export default function () {
  if (http.post(__ENV.URL).status === 200) {
    ok.add(1);
  }
}

// One line of JSON, as the lab's own users print it.
export function handleSummary(data) {
  const done = data.metrics.iterations.values.count;
  const answered = data.metrics.answered ? data.metrics.answered.values.count : 0;
  const seconds = data.state.testRunDurationMs / 1000;
  return { stdout: JSON.stringify({ ok: answered, failed: done - answered, seconds }) + "\n" };
}
