"""A leading agent obeys a person who signed in at an agent's page, by the key that the agents share."""

from __future__ import annotations

from agent.execute.commands.command_context import CommandWitness, witnessed
from agent.journal.commands import CommandVerb, ExecutionPause, answer_to, pause_in, paused
from agent.journal.entries import JournalKey
from agent.journal.record_trust import LeaderEntry, leader_write
from tests.act.test_execute_mode import Box, Leading, MemoryJournal, acting, asked
from tests.observe.live import wait_for


def test_a_command_of_a_signed_in_person_is_checked_with_the_agents_key() -> None:
    journal, key = MemoryJournal(), JournalKey(b"the key that executors share")
    journal.append(leader_write(LeaderEntry("rw-1", "host", 1, "c-1", 0)), paused(ExecutionPause("bob", "", 1)))
    wish = asked(CommandVerb.RESUME)
    for name, by in (("c-1", JournalKey(b"a key that no executor has")), ("c-2", key)):
        value = {**wish.value, "id": name, "proposal_id": None, "who": "ann@example.org"}
        one = wish._replace(id=name, value=witnessed(value, CommandWitness("rw-2", (by,)), "c-1"))
        with acting(Leading(journal, Box([one])), witnesses=(key,)):
            found = wait_for(lambda name=name: answer_to(journal.view(), name), "it is answered", 20)
        assert (found.answer.done, pause_in(journal.view()) is None) == (by is key, by is key)
    assert (found.command.who, found.command.person, found.command.witness) == ("ann@example.org",) * 2 + ("rw-2",)
