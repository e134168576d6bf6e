// The first page: the picture, all flows, drift, and what changed lately.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { get } from "./client.js";
import { Picture } from "./picture.js";
import { bytes, clock, count, milliseconds, NONE, seconds, tone } from "./words.js";

export function State({ state }) {
  return html`<span class="state ${tone(state)}">${state}</span>`;
}

// Asks again and again; the last answer stays while there is no newer one.
export function useAnswer(path, every) {
  const [found, setFound] = useState({ value: null, error: null });
  useEffect(() => {
    let wanted = true;
    const ask = () => get(path).then(
      (value) => wanted && setFound({ value, error: null }),
      (error) => wanted && setFound((was) => ({ ...was, error: error.message })),
    );
    ask();
    const timer = setInterval(ask, every);
    return () => { wanted = false; clearInterval(timer); };
  }, [path, every]);
  return found;
}

function FlowRow({ flow, ready }) {
  const groups = flow.groups && flow.groups.count !== null ? count(flow.groups.count) : NONE;
  const r = ready && ready[flow.name];
  return html`<tr>
    <td class="name"><a href=${`#/flow/${encodeURIComponent(flow.name)}`}>${flow.source} → ${flow.target}</a>
      <div class="faint">${flow.name}</div></td>
    <td><${State} state=${flow.state} />${flow.failing && html`<div class="bad">${flow.failing}</div>`}
      ${flow.waiting && html`<div class="faint">${flow.waiting}</div>`}
      ${!flow.tasks && flow.silentSeconds !== null && html`<div class="faint">last report ${seconds(flow.silentSeconds)} ago</div>`}</td>
    <td class="number">${flow.tasks ? seconds(flow.lagSeconds) : NONE}</td>
    <td class="number">${flow.tasks ? count(flow.lag) : NONE}</td>
    <td class="number">${flow.tasks ? count(flow.recordsPerSecond) : NONE}<div class="faint">${flow.tasks ? bytes(flow.bytesPerSecond) : ""}</div></td>
    <td class="number">${flow.latencyMs ? milliseconds(flow.latencyMs.p99) : NONE}</td>
    <td class="number">${count(flow.parked)}</td>
    <td class="number">${count(flow.paused)}</td>
    <td class="number">${groups}</td>
    <td>${r ? html`<${Ready} of=${r} />` : NONE}</td>
  </tr>`;
}

export function Ready({ of }) {
  const groups = of.groups ? `, groups ${of.groups.exact} of ${of.groups.all}` : "";
  const behind = of.recordsBehind === null ? "records behind unknown" : `${count(of.recordsBehind)} records behind`;
  return html`<span class=${of.ready ? "good" : "warn"}>${of.ready ? "ready" : "not ready"}</span>
    <div class="faint">${behind}${groups}</div>`;
}

function Drift() {
  const { value, error } = useAnswer("/drift", 30000);
  if (!value) return html`<p class="faint">${error || "not compared yet"}</p>`;
  const when = html`<span class="faint"> as of ${clock(value.time)}</span>`;
  const away = value.unreachable.map((one) => html`<p class="notice">${one.where}: ${one.message}</p>`);
  if (!value.drift.length) {
    const clean = value.clean ? "No drift: the targets are what the last apply made them." : "No drift as far as was seen.";
    return html`<p><span class=${value.clean ? "good" : "warn"}>${clean}</span>${when}</p>${away}`;
  }
  return html`<p><span class="bad">${value.drift.length} differences</span>${when}</p>${away}
    <div class="scroll" tabindex="0" role="region" aria-label="Drift"><table><thead><tr><th scope="col">cluster</th><th scope="col">topic</th>
    <th scope="col">field</th><th scope="col">desired</th><th scope="col">found</th><th scope="col">what to do</th></tr></thead><tbody>
    ${value.drift.slice(0, 50).map((one) => html`<tr><td>${one.cluster}</td><td class="name">${one.topic}</td><td>${one.kind} ${one.field}</td>
      <td>${one.desired ?? "not there"}</td><td>${one.found ?? "not there"}</td><td>${one.remedy}</td></tr>`)}</tbody></table></div>`;
}

export function Changes({ changes }) {
  if (!changes.length) return html`<p class="faint">Nothing since this service began.</p>`;
  return html`<ul class="plain">${changes.slice(-30).reverse().map((one) => html`<li>
    <span class="faint">${clock(one.time)}</span> <strong>${one.flow}</strong> ${one.message}</li>`)}</ul>`;
}

export function Overview({ status, changes }) {
  const names = status.flows.map((flow) => flow.name).join("\n");
  const [ready, setReady] = useState({});
  useEffect(() => {
    let wanted = true;
    const ask = async () => {
      const found = {};
      for (const name of names.split("\n").filter(Boolean).slice(0, 100)) {
        try {
          found[name] = await get(`/flows/${encodeURIComponent(name)}/readiness`);
        } catch (error) {
          if (!wanted) return;
        }
      }
      if (wanted) setReady(found);
    };
    ask();
    const timer = setInterval(ask, 10000);
    return () => { wanted = false; clearInterval(timer); };
  }, [names]);
  return html`
    ${status.unreachable.map((alias) => html`<p class="notice failed">Cluster ${alias} does not answer this service: its flows are not shown.</p>`)}
    <${Picture} flows=${status.flows} />
    <h2 id="flows">Flows</h2>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="flows"><table>
      <thead><tr><th scope="col">flow</th><th scope="col">state</th><th scope="col" class="number">lag</th><th scope="col" class="number">records</th>
      <th scope="col" class="number">records/s</th><th scope="col" class="number">p99</th><th scope="col" class="number">parked</th>
      <th scope="col" class="number">paused</th><th scope="col" class="number">groups</th><th scope="col">failover</th></tr></thead>
      <tbody>${status.flows.map((flow) => html`<${FlowRow} key=${flow.name} flow=${flow} ready=${ready} />`)}</tbody>
    </table></div>
    <h2>Drift</h2><${Drift} />
    <h2>Events</h2><${Changes} changes=${changes} />`;
}
