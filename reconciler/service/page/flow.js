// The page of one flow: figures, charts, partitions worst first, groups, and pause, resume, restart.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { post } from "./client.js";
import { Changes, Ready, State, useAnswer } from "./overview.js";
import { bytes, count, milliseconds, NONE, seconds } from "./words.js";

const ACTIONS = {
  pause: "What is in flight is finished, and nothing more is copied until it is resumed. It holds for later runs, too.",
  resume: "It goes on where it stands.",
  restart: "What is parked is tried again at once.",
};

function Chart({ title, times, values, unit }) {
  const place = useRef(null);
  const chart = useRef(null);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const [ink, edge, accent] = ["--faint", "--edge", "--accent"].map((name) => style.getPropertyValue(name).trim());
    const axis = { stroke: ink, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge } };
    const width = Math.max(200, place.current.clientWidth);
    chart.current = new uPlot({
      width, height: 170, cursor: { show: false }, legend: { show: false },
      axes: [axis, { ...axis, size: 56 }], scales: { y: { range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.1)] } },
      series: [{}, { stroke: accent, width: 2, spanGaps: false }],
    }, [times, values], place.current);
    return () => chart.current.destroy();
  }, []);
  useEffect(() => { chart.current.setData([times, values]); }, [times, values]);
  const known = values.filter((value) => value !== null);
  const newest = known.length ? `, now ${count(known[known.length - 1])} ${unit}, at most ${count(Math.max(...known))}` : "";
  return html`<figure role="group" aria-label=${title}><figcaption>${title} (${unit})${newest}</figcaption><div ref=${place}></div></figure>`;
}

function Charts({ name }) {
  const { value } = useAnswer(`/flows/${encodeURIComponent(name)}/history`, 2000);
  if (!value || value.time.length < 2) return html`<p class="faint">Charts begin with the second reading.</p>`;
  return html`<div class="charts">
    <${Chart} title="Lag" unit="seconds" times=${value.time} values=${value.lagSeconds} />
    <${Chart} title="Lag" unit="records" times=${value.time} values=${value.lag} />
    <${Chart} title="Latency, 99th percentile" unit="ms" times=${value.time} values=${value.p99Ms} />
    <${Chart} title="Rate" unit="records/s" times=${value.time} values=${value.recordsPerSecond} />
  </div>`;
}

function Actions({ name, caller, done }) {
  const dialog = useRef(null);
  const [wanted, setWanted] = useState(null);
  const [busy, setBusy] = useState(false);
  const [topics, setTopics] = useState("");
  const ask = (action) => { setWanted(action); setTopics(""); dialog.current.showModal(); };
  const go = async () => {
    setBusy(true);
    try {
      const named = topics.split(/[\s,]+/).filter(Boolean);
      const { flows } = await post(`/flows/${encodeURIComponent(name)}/${wanted}`, { topics: named });
      const [one] = flows;
      const tasks = one.tasks ? `confirmed by ${one.tasks - one.unconfirmed} of ${one.tasks} running tasks` : "no task runs now";
      done({ failed: one.unconfirmed > 0, text: `${wanted} of ${name}: ${tasks}` });
    } catch (error) {
      done({ failed: true, text: error.message });
    }
    setBusy(false);
    dialog.current.close();
  };
  if (caller.role !== "operate") {
    return html`<p class="faint">You may read here. To pause and resume, the service needs --operate, or a token with that role.</p>`;
  }
  return html`<div class="actions">${Object.keys(ACTIONS).map((action) => html`<button type="button" onClick=${() => ask(action)}>${action}</button>`)}</div>
    <dialog ref=${dialog} aria-labelledby="sure">
      <h2 id="sure">${wanted} ${name}?</h2>
      <p>${ACTIONS[wanted]}</p>
      <p><label>Only these topics, or partitions as TOPIC/PARTITION (none: the whole flow)<br />
        <input value=${topics} onInput=${(event) => setTopics(event.target.value)} /></label></p>
      <div class="actions"><button type="button" class="primary" disabled=${busy} onClick=${go}>Yes, ${wanted}</button>
        <button type="button" disabled=${busy} onClick=${() => dialog.current.close()}>No</button></div>
    </dialog>`;
}

function Partitions({ name }) {
  const { value } = useAnswer(`/flows/${encodeURIComponent(name)}/partitions?limit=100`, 2000);
  if (!value) return html`<p class="faint">…</p>`;
  const more = value.count > value.partitions.length ? html`<p class="faint">and ${count(value.count - value.partitions.length)} more</p>` : "";
  return html`<div class="scroll" tabindex="0" role="region" aria-labelledby="partitions"><table>
    <thead><tr><th scope="col">topic/partition</th><th scope="col">state</th><th scope="col" class="number">position</th><th scope="col" class="number">end</th>
    <th scope="col" class="number">lag</th><th scope="col" class="number">records</th><th scope="col" class="number">p99</th><th scope="col">reason, and what to do</th></tr></thead>
    <tbody>${value.partitions.map((one) => html`<tr key=${`${one.topic}/${one.partition}`}>
      <td class="name">${one.topic}/${one.partition}<div class="faint">${one.remote}</div></td>
      <td><${State} state=${one.live ? one.state : "silent"} /></td><td class="number">${count(one.position)}</td><td class="number">${count(one.end)}</td>
      <td class="number">${seconds(one.lagSeconds)}</td><td class="number">${count(one.lag)}</td>
      <td class="number">${one.latencyMs ? milliseconds(one.latencyMs.p99) : NONE}</td>
      <td>${one.reason ? `${one.reason.text} [${one.reason.code}]` : ""}</td></tr>`)}</tbody></table></div>${more}`;
}

function Topics({ name }) {
  const { value } = useAnswer(`/flows/${encodeURIComponent(name)}/topics`, 5000);
  if (!value) return html`<p class="faint">…</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-labelledby="topics"><table>
    <thead><tr><th scope="col">topic</th><th scope="col" class="number">partitions</th><th scope="col" class="number">lag</th>
    <th scope="col" class="number">records</th><th scope="col" class="number">parked</th><th scope="col" class="number">paused</th></tr></thead>
    <tbody>${value.slice(0, 100).map((one) => html`<tr key=${one.topic}><td class="name">${one.topic}<div class="faint">${one.remote}</div></td>
      <td class="number">${count(one.partitions)}</td><td class="number">${seconds(one.lagSeconds)}</td><td class="number">${count(one.lag)}</td>
      <td class="number">${count(one.parked)}</td><td class="number">${count(one.paused)}</td></tr>`)}</tbody></table></div>
    ${value.length > 100 ? html`<p class="faint">and ${count(value.length - 100)} more</p>` : ""}`;
}

function Groups({ name }) {
  const { value } = useAnswer(`/flows/${encodeURIComponent(name)}/groups`, 5000);
  if (!value) return html`<p class="faint">…</p>`;
  if (!value.taken) return html`<p class="faint">This flow takes no consumer groups along.</p>`;
  return html`<p>Last round of checkpoints: ${value.silentSeconds === null ? "none known" : `${seconds(value.silentSeconds)} ago`}</p>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="groups"><table><thead><tr><th scope="col">group</th>
    <th scope="col" class="number">checkpoint age</th><th scope="col">not synced because of</th></tr></thead>
    <tbody>${value.groups.slice(0, 200).map((one) => html`<tr key=${one.group}><td class="name">${one.group}</td>
      <td class="number">${seconds(one.ageSeconds)}</td><td>${one.code || ""}</td></tr>`)}</tbody></table></div>`;
}

function Readiness({ name }) {
  const { value } = useAnswer(`/flows/${encodeURIComponent(name)}/readiness`, 5000);
  if (!value) return html`<p class="faint">…</p>`;
  return html`<p><${Ready} of=${value} /></p><ul>${value.reasons.map((one) => html`<li>${one}</li>`)}</ul>
    <p class="faint">The whole plan of a failover: <code>${value.command}</code></p>`;
}

export function FlowPage({ flow, changes, caller }) {
  const [notice, setNotice] = useState(null);
  const name = flow.name;
  return html`<h2><a href="#/">All flows</a> › ${flow.source} → ${flow.target} <span class="faint">${name}</span></h2>
    <ul class="cards">
      <li>state<strong><${State} state=${flow.state} /></strong>${flow.failing || flow.waiting || ""}</li>
      <li>lag<strong>${flow.tasks ? seconds(flow.lagSeconds) : NONE}</strong>${flow.tasks ? count(flow.lag) : NONE} records</li>
      <li>rate<strong>${flow.tasks ? count(flow.recordsPerSecond) : NONE} rec/s</strong>${flow.tasks ? bytes(flow.bytesPerSecond) : ""}</li>
      <li>p99<strong>${flow.latencyMs ? milliseconds(flow.latencyMs.p99) : NONE}</strong></li>
      <li>tasks<strong>${flow.tasks}</strong>${flow.silentTasks ? `${flow.silentTasks} silent` : ""}</li>
      <li>parked, paused<strong>${flow.parked}, ${flow.paused}</strong></li>
    </ul>
    <div aria-live="polite">${notice && html`<p class="notice ${notice.failed ? "failed" : ""}">${notice.text}</p>`}</div>
    <${Actions} name=${name} caller=${caller} done=${setNotice} />
    ${flow.pauses.map((one) => html`<p class="notice">paused: ${one.topic === null ? "the whole flow" : `${one.topic}${one.partition === null ? "" : `/${one.partition}`}`} ${one.said}</p>`)}
    <${Charts} name=${name} />
    <h2>Failover readiness</h2><${Readiness} name=${name} />
    <h2 id="partitions">Partitions, the worst first</h2><${Partitions} name=${name} />
    <h2 id="topics">Topics</h2><${Topics} name=${name} />
    <h2 id="groups">Consumer groups</h2><${Groups} name=${name} />
    <h2>Events</h2><${Changes} changes=${changes.filter((one) => one.flow === name)} />`;
}
