"""Pictures and numbers for people: a page of a fold, and the bar of a context.

Needs the extra ``report`` for pages.
"""

from __future__ import annotations

from foldline.report._figures import Prices
from foldline.report.page import html, plan_html, save

__all__ = ["Prices", "html", "plan_html", "save"]
