// The picture of `anabranch graph`, with figures that move.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { picture } from "./client.js";
import { brief, tone } from "./words.js";

// Parsed as XML, not as HTML: what it holds was escaped by who drew it, and scripts would not run under this page's policy.
function parsed(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return root.nodeName === "svg" ? document.importNode(root, true) : null;
}

function move(svg, flows) {
  for (const flow of flows) {
    const label = svg.querySelector(`g.flow[data-flow="${CSS.escape(flow.name)}"]`);
    if (!label) continue;
    const lines = label.querySelectorAll("text");
    const line = lines[lines.length - 1];
    line.textContent = brief(flow);
    const box = label.querySelector("rect.label");
    box.setAttribute("width", Math.max(Number(box.getAttribute("width")), line.getComputedTextLength() + 18));
    label.classList.toggle("live-bad", tone(flow.state) === "bad");
    label.classList.toggle("live-warn", tone(flow.state) === "warn");
    const ends = `[data-source="${CSS.escape(flow.source)}"][data-target="${CSS.escape(flow.target)}"]`;
    for (const wire of svg.querySelectorAll(`g.wire${ends}`)) wire.classList.toggle("moving", flow.recordsPerSecond > 0);
  }
}

export function Picture({ flows }) {
  const place = useRef(null);
  const [svg, setSvg] = useState(null);
  useEffect(() => {
    let wanted = true;
    picture().then((text) => wanted && text && setSvg(parsed(text)), () => {});
    return () => { wanted = false; };
  }, []);
  useEffect(() => {
    if (!svg || !place.current) return;
    if (!svg.parentNode) {
      place.current.append(svg);
      svg.addEventListener("click", (event) => {
        const label = event.target.closest("g.flow");
        if (label) location.hash = `#/flow/${encodeURIComponent(label.dataset.flow)}`;
      });
    }
    move(svg, flows);
  }, [svg, flows]);
  return html`<div class="picture" ref=${place} tabindex="0" role="group" aria-label="Picture of clusters and flows"></div>`;
}
