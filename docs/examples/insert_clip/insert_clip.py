"""Inserts a clip into timeline.json of the working directory. Arguments: JSON on standard input; result: one JSON value."""

import json
import os
import sys

call = json.load(sys.stdin)
bars = call["spec"].get("bars", 4)
if not isinstance(bars, int) or bars < 1:
    print(json.dumps({"error": f"spec.bars is {bars!r}; give a whole number from 1.", "code": "invalid_args"}))
    sys.exit(1)

print(f"inserting {bars} bars on {call['track']} at bar {call['start_bar']}", file=sys.stderr)
timeline = []
if os.path.exists("timeline.json"):
    with open("timeline.json") as file:
        timeline = json.load(file)
timeline.append({"clip_id": len(timeline) + 1, "bars": bars, **call})
with open("timeline.json", "w") as file:
    json.dump(timeline, file, indent=2)
print(json.dumps({"ok": True, "clip_id": len(timeline)}))
