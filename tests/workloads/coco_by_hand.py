"""COCO's evaluation once more, written from its definition with plain loops: slow, and easy to compare with it."""

from __future__ import annotations

import numpy as np


def overlap(a, b, crowd):
    wide = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    tall = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    inner = max(wide, 0.0) * max(tall, 0.0)
    return inner / (a[2] * a[3] if crowd else a[2] * a[3] + b[2] * b[3] - inner)


def judge_image(objects, detections, threshold, limit):
    """(score, right, ignored) of each detection; how many objects count. Objects: (box, area, crowd)."""
    objects = sorted(objects, key=lambda o: o[2] or o[1] > limit)
    skipped = [crowd or area > limit for _, area, crowd in objects]
    taken = [False] * len(objects)
    rows = []
    for box, score in detections:
        best, chosen = min(threshold, 1 - 1e-10), -1
        for number, (own, _, crowd) in enumerate(objects):
            if taken[number] and not crowd:
                continue
            if chosen > -1 and not skipped[chosen] and skipped[number]:
                break
            reached = overlap(box, own, crowd)
            if reached >= best:
                best, chosen = reached, number
        if chosen > -1:
            taken[chosen] = True
            rows.append((score, True, skipped[chosen]))
        else:
            rows.append((score, False, box[2] * box[3] > limit))
    return rows, len(objects) - sum(skipped)


def precision_at_recalls(rows, objects):
    rows = [row for row in sorted(rows, key=lambda row: -row[0]) if not row[2]]
    right, points = 0, []
    for number, (_, hit, _) in enumerate(rows, 1):
        right += hit
        points.append((right / objects, right / number))
    return [max([p for r, p in points if r >= recall], default=0.0) for recall in np.linspace(0, 1, 101)]


def by_hand(truths, found, most):
    out = {}
    for name, limit, thresholds in (
        ("ap", 1e10, np.linspace(0.5, 0.95, 10)),
        ("ap50", 1e10, [0.5]),
        ("ap_small", 32**2, np.linspace(0.5, 0.95, 10)),
    ):
        values = []
        for label in sorted({int(x) for truth in truths for x in truth.labels}):
            for threshold in thresholds:
                rows, count = [], 0
                for truth, f in zip(truths, found, strict=True):
                    own = [i for i, x in enumerate(truth.labels) if x == label]
                    objects = [(truth.boxes[i], truth.areas[i], truth.crowd[i]) for i in own]
                    hits = sorted((i for i, x in enumerate(f.labels) if x == label), key=lambda i: -f.scores[i])[:most]
                    judged, counted = judge_image(objects, [(f.boxes[i], f.scores[i]) for i in hits], threshold, limit)
                    rows += judged
                    count += counted
                if count:
                    values += precision_at_recalls(rows, count)
        if values:
            out[name] = float(np.mean(values))
    return out
