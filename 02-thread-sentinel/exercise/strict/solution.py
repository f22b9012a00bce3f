"""What the community's bot does on behalf of the jobs: it opens threads."""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


class ThreadNotPosted(Exception):
    """The bot or the section is missing."""


def post_thread(
    db: Session, *, section_slug: str, title: str, body_md: str, now: datetime
) -> int:
    """Open a thread as the bot; returns its id. Raises ThreadNotPosted when there is none."""
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
        raise ThreadNotPosted(f"{title}: bot or section {section_slug} missing")
    return thread_id


def require_thread(db: Session, **thread) -> int:
    """Open a thread as `post_thread` does, which raises by itself now."""
    return post_thread(db, **thread)
