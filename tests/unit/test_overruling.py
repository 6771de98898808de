"""Which later words of the user end or overrule a rule, and which do not: a rule that is lost does more harm."""

from __future__ import annotations

import pytest

from talks import page, said, user

ANOTHER_MATTER = [
    ("Never commit before running the tests.", "Commit the parser changes."),
    ("Don't delete files before asking me.", "Delete the old log."),
    ("Always ask first, do not deploy without my ok first.", "How did the last deploy go?"),
    ("Don't deploy yet.", "Why did the last deploy take so long?"),
    ("Don't deploy yet. Don't commit until I have reviewed it.", "Look at how we deploy the docs and commit messages."),
    ("Don't commit until I have reviewed it.", "Show me the commit message of yesterday."),
    ("Do not touch the schema until Monday.", "Document the schema, but touch nothing in it."),
    ("Don't upgrade React before the release.", "Write a ticket to upgrade React in May."),
    ("Never log the token, not even before masking.", "Log the request id."),
    ("Never overwrite the first column.", "Overwrite the second column with totals."),
    ("先不要提交代码。", "看一下提交代码的历史。"),
    ("Never push to main. Never force-push.", "Push the branch feature/x now."),
    ("Don't delete rows from the orders table.", "Show me the rows of the orders table now."),
    ("Never change the public API.", "The public API does not respond anymore, please look."),
    ("Never touch the schema.", "Could you tell me how the schema looks like from now on?"),
    ("Use British spelling in the texts.", "Does the spelling check not find British words anymore?"),
    (
        "Never delete user rows. Always keep the audit log.",
        'The customer wrote: "please delete my user rows instead, I no longer want an audit log". What do we answer?',
    ),
    ("Use tabs for indentation.", "Fix the tabs in the header instead."),
    ("Use tabs in the templates.", "Write the tests for the templates instead, please."),
    ("Ne modifie pas la base de données.", "Finalement, documente la base de données."),
    ("No toques nunca la base de datos.", "Documenta la base de datos en vez de la API."),
    ("No toques los tests.", "Ejecuta los tests de nuevo en vez de compilar."),
    ("Ändere nichts an der Datenbank.", "Mach jetzt doch erst den Cache der Datenbank in den Docs."),
    ("不要修改数据库。", "把标题改成数据库导出。"),
    ("Write all docs in English.", "Don't write docs for the helpers, not yet."),
    ("Keep the header sticky.", "Replace the favicon, not the logo. Don't replace the header."),
    ("Always use snake_case for columns.", "Actually, not snake_case errors but timeouts are the problem."),
    ("Always deploy with Helm.", "The problem is not Helm but the registry."),
    ("Keep the page size at 50 rows.", "The export should be limited: the chunk at 500 rows."),
    ("Keep lines below 100 characters.", "Titles should be below 60 characters."),
    ("The timeout must be 30 seconds for the API.", "The timeout should be 10 seconds for the health check."),
]
OVERRULED = [
    ("Don't commit yet.", "Commit it."),
    ("Don't deploy yet.", "ok, now deploy please"),
    ("Don't touch the tests.", "You may touch the tests now."),
    ("Use redis for the counters.", "Don't use redis for this after all."),
    ("The accent should be green.", "The accent should be blue instead."),
    ("Use tabs for indentation.", "Use spaces for indentation instead."),
    ("Budget for hotels is 90 a night.", "The budget is 100 a night from now on."),
    ("Batch upload every 50 scans.", "Make it every 20 scans."),
    ("先不要提交代码。", "现在提交代码吧。"),
    ("Don't commit until I have reviewed it.", "Looks good. Commit it."),
]

BEFORE = (
    "The server draws maps of tiles for a small town. The tiles come from a folder that the town keeps, and "
    "each page shows nine of them, with a title, a legend and a date."
)


def talk(rule: str, later: str) -> str:
    return page(user(f"{BEFORE} {rule}"), said("I have read the notes."), user(later), said("One moment."))


@pytest.mark.parametrize(("rule", "later"), ANOTHER_MATTER)
def test_a_rule_stands_when_later_words_are_on_another_matter(rule: str, later: str) -> None:
    assert "[overruled" not in talk(rule, later)


@pytest.mark.parametrize(("rule", "later"), OVERRULED)
def test_a_rule_is_marked_that_later_words_overrule(rule: str, later: str) -> None:
    assert "[overruled by [2]]" in talk(rule, later)
