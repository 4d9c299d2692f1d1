"""The look of the page: one style sheet, light and dark."""

STYLE = """
:root { color-scheme: light dark;
  --page: #f7f8fa; --card: #ffffff; --ink: #1b1f24; --soft: #59636e; --line: #dfe3e8; --track: #eceff3;
  --S: #8a6d00; --V: #2563c9; --MTE2: #0f8a6a; --MTE3: #c2571a; --bad: #b42318; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root {
  --page: #101317; --card: #181c22; --ink: #e8ebef; --soft: #9aa5b1; --line: #2b323b; --track: #242a32;
  --S: #d9b22f; --V: #6ea8ff; --MTE2: #3fc39b; --MTE3: #f08a4b; --bad: #ff7b72; --good: #56d364; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 40px 0 8px; overflow-wrap: anywhere; }
h3 { font-size: 14px; margin: 0 0 10px; }
p { margin: 0 0 12px; color: var(--soft); max-width: 76ch; }
section.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin: 14px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(138px, 1fr)); gap: 12px; margin: 20px 0 8px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.tile span { display: block; color: var(--soft); font-size: 12px; }
.tile b { font-size: 19px; font-weight: 600; white-space: nowrap; font-variant-numeric: tabular-nums; }
.tile small { color: var(--soft); font-size: 12px; display: block; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 640px; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg text.lane { fill: var(--ink); font-weight: 600; font-size: 12px; }
svg text.in { fill: var(--card); font-size: 10px; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .back { fill: var(--track); }
.S { fill: var(--S); } .V, .block { fill: var(--V); } .MTE2 { fill: var(--MTE2); } .MTE3 { fill: var(--MTE3); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 12px; border-bottom: 1px solid var(--line);
  padding: 4px 10px 6px 0; }
td { border-bottom: 1px solid var(--line); padding: 6px 10px 6px 0; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
code { font: 12px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
td:has(> .dot) { white-space: nowrap; }
td small { color: var(--soft); display: block; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px;
  background: currentColor; }
.dot.S { color: var(--S); } .dot.V { color: var(--V); }
.dot.MTE2 { color: var(--MTE2); } .dot.MTE3 { color: var(--MTE3); }
.bar { background: var(--track); border-radius: 3px; height: 8px; min-width: 90px; margin-top: 6px; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--V); }
.bar i.S { background: var(--S); } .bar i.MTE2 { background: var(--MTE2); } .bar i.MTE3 { background: var(--MTE3); }
.bad { color: var(--bad); } .good { color: var(--good); }
details { margin-top: 28px; } summary { cursor: pointer; color: var(--soft); }
ul { padding-left: 18px; }
"""
