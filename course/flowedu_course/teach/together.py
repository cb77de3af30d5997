"""Verdicts of the answer's own process, for exercises whose values cannot be sent (Hole.together)."""
from __future__ import annotations

import random
import secrets
import socket
from typing import Any

from flowedu_course.laws import Verdict
from flowedu_course.teach import wrong
from flowedu_course.teach.protocol import Broken, receive, send


def judge_together(hole, text: str, link: socket.socket, seed: int = 0) -> Verdict:
    """Return the verdict of the answer's own process on the answer, if two controls succeed.

    The process must also reject two wrong answers.

    One wrong answer is judged before the answer and one after it. Each request has a random number that the
    reply must repeat, so that a reply written in advance is rejected. README.md in this folder describes the
    limits of this method.

    Raises Broken if the process has ended or its reply is not a verdict.
    """
    plants = random.SystemRandom().sample(wrong.answers(hole), 2)
    if not _finds(hole, plants[0], link):
        raise Broken("the judge accepted a wrong answer")
    verdict = _ask_for_verdict(hole, text, link, seed)
    if verdict.state == "right" and not _finds(hole, plants[1], link):
        return Verdict("wrong", lines=["  after this answer had run, the judge accepted a wrong answer",
                         "  an answer must change only the values that its task names"])
    return verdict


def _finds(hole, plant: wrong.Wrong, link: socket.socket) -> bool:
    """Return True if the other process rejects a wrong answer by its law, with seed 0."""
    verdict = _ask_for_verdict(hole, plant.text, link, 0)
    return (verdict.state, verdict.law) == ("wrong", plant.law)


def _ask_for_verdict(hole, text: str, link: socket.socket, seed: int) -> Verdict:
    number = secrets.token_hex(16)
    send(link, {"text": text, "number": number, "seed": seed})
    reply = receive(link)
    if reply.get("number") != number:
        raise Broken("a reply to another request")
    return believed(reply.get("verdict"), hole)


def believed(said: Any, hole, together: bool = True) -> Verdict:
    """Return a verdict made of the valid parts of the reply of the answer's process."""
    try:
        text = [str(t)[:200] for t in said["lines"]][:11]
        extra = {str(k)[:40]: v for k, v in said["extra"].items() if type(v) in (int, float)}
        if together:
            extra["together"] = True
        return Verdict(state={"right": "right", "open": "open"}.get(said["state"], "wrong"), lines=text,
                       extra=extra, stars=max(0, min(int(said["stars"]), max(1, len(hole.stars)))),
                       of=max(int(said["stars"]), min(int(said.get("of") or len(hole.stars)),
                                                      len(hole.stars))),
                       title=str(said.get("title", ""))[:100], law=said["law"] if said["law"] in hole.laws
                       else "", seconds=float(said["seconds"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return Verdict("wrong", lines=["  no valid verdict was returned"])
