"""What the community's bot does on behalf of the jobs: it opens threads.

**Stops:** a forum that is not set up from taking a job down with it.
**Lets through:** the loss of the thread. `post_thread` is best effort: it warns and returns None.
"""

import logging
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

logger = logging.getLogger(__name__)


class ThreadNotPosted(Exception):
    """The bot or the section is missing."""


def post_thread(
    db: Session, *, section_slug: str, title: str, body_md: str, now: datetime
) -> int | None:
    """Open a thread as the bot; returns its id, or None when the bot or the section is missing."""
    thread_id = db.scalar(
        text("""
            INSERT INTO threads (section_id, author_id, title, body_md, created_at)
            SELECT sections.id, members.id, :title, :body_md, :now
            FROM sections JOIN members ON members.is_bot
            WHERE sections.slug = :section_slug
            RETURNING id
        """),
        {"section_slug": section_slug, "title": title, "body_md": body_md, "now": now},
    )
    if thread_id is None:
        logger.warning("post_thread: bot or section %s missing", section_slug)
    return thread_id


def require_thread(db: Session, **thread) -> int:
    """Open a thread as `post_thread` does, and raise ThreadNotPosted where that returns None."""
    thread_id = post_thread(db, **thread)
    if thread_id is None:
        raise ThreadNotPosted(thread["title"])
    return thread_id
