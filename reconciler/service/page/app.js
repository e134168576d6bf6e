// The frame: who asks, the stream of events, and which page the address names.
import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { Denied, events, get, remember } from "./client.js";
import { FlowPage } from "./flow.js";
import { Overview } from "./overview.js";
import { clock } from "./words.js";

const AGAIN_MS = 2000;
const MOST_CHANGES = 500;

function useHash() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const take = () => setHash(location.hash);
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
  return hash;
}

function useService(token) {
  const [found, setFound] = useState({ status: null, changes: [], caller: null, topology: null, denied: false, error: null });
  useEffect(() => {
    const leaving = new AbortController();
    const take = (kind, data) => setFound((was) => {
      if (kind === "flows") return { ...was, status: data, error: null };
      return { ...was, changes: [...was.changes.filter((one) => one.number !== data.number), data].slice(-MOST_CHANGES) };
    });
    const run = async () => {
      while (!leaving.signal.aborted) {
        try {
          const [caller, topology] = await Promise.all([get("/caller"), get("/topology")]);
          setFound((was) => ({ ...was, caller, topology, changes: [], denied: false }));
          await events(take, leaving.signal);
        } catch (error) {
          if (leaving.signal.aborted) return;
          if (error instanceof Denied) {
            setFound((was) => ({ ...was, denied: true }));
            return;
          }
        }
        if (leaving.signal.aborted) return;
        setFound((was) => ({ ...was, error: "The service does not answer; what is shown is old." }));
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    };
    run();
    return () => leaving.abort();
  }, [token]);
  return found;
}

function TokenForm({ done, again }) {
  const [token, setToken] = useState("");
  const go = () => { remember(token); done(token); };
  return html`<main id="main"><h2>A token is needed</h2>${again && html`<p class="notice failed" role="alert">This token is wrong.</p>`}
    <p><label>Token<br /><input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)}
      onKeyDown=${(event) => event.key === "Enter" && go()} /></label></p>
    <div class="actions"><button type="button" class="primary" onClick=${go}>Go on</button></div></main>`;
}

function App() {
  const hash = useHash();
  const [token, setToken] = useState("");
  const { status, changes, caller, topology, denied, error } = useService(token);
  useEffect(() => { if (topology) document.title = `${topology.name} · Anabranch`; }, [topology]);
  const head = html`<header><h1><a href="#/">${topology ? topology.name : "Anabranch"}</a></h1>
    <span class="faint">${status ? `as of ${clock(status.time)}` : ""}</span>
    <span class="faint">${caller ? `${caller.name}, may ${caller.role}` : ""}</span></header>`;
  if (denied) return html`${head}<${TokenForm} done=${setToken} again=${token !== ""} />`;
  const name = hash.startsWith("#/flow/") ? decodeURIComponent(hash.slice(7)) : null;
  const flow = status && name !== null ? status.flows.find((one) => one.name === name) : null;
  let page = html`<p class="faint">Reading the status topics…</p>`;
  if (status && caller && flow) page = html`<${FlowPage} key=${name} flow=${flow} changes=${changes} caller=${caller} />`;
  else if (status && name !== null) page = html`<h2><a href="#/">All flows</a></h2><p class="notice failed">No flow ${name} is shown: it is not declared, or its target does not answer.</p>`;
  else if (status) page = html`<${Overview} status=${status} changes=${changes} />`;
  return html`${head}<main id="main">${error && html`<p class="notice failed" role="alert">${error}</p>`}${page}</main>
    <footer>Figures are those of <code>anabranch status</code> and <code>lag</code>. <a href="/docs/openapi.json">OpenAPI</a> · <a href="/metrics">metrics</a></footer>`;
}

render(html`<${App} />`, document.getElementById("app"));
