"""Topologies as Mermaid flowcharts and SVG pictures."""
