"""Pictures and numbers for people: a page of a fold, and the bar of a context.

Needs the extra ``report`` for pages.
"""

from __future__ import annotations

from foldline.report._audit import Audit, Finding, FoldAudit, audit, audits
from foldline.report._context import CATEGORIES, ContextNow, context_now
from foldline.report._diff import Difference, difference
from foldline.report._figures import Prices
from foldline.report.bar import BudgetBar
from foldline.report.page import html, plan_html, save

__all__ = [
    "CATEGORIES",
    "Audit",
    "BudgetBar",
    "ContextNow",
    "Difference",
    "Finding",
    "FoldAudit",
    "Prices",
    "audit",
    "audits",
    "context_now",
    "difference",
    "html",
    "plan_html",
    "save",
]
