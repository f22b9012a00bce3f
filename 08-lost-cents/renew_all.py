"""The day of the renewal: every customer's invoice is paid, and the webhook is called for each.

Started as `python renew_all.py VARIANT`; prints a line of JSON: for each customer the cents that
were left before, and those of them that are gone.

**Stops:** nothing.
**Lets through:** what the variant lets through.
"""

import importlib
import json
import sys

from database import connect


def main(variant: str) -> None:
    """Renew all customers but the first, whom the scenarios use."""
    renew = importlib.import_module(variant).renew
    with connect() as db:
        customers = db.execute(
            "SELECT user_id, balance_cents, plan_cents FROM user_billing"
            " WHERE user_id > 1 ORDER BY user_id").fetchall()
    for user, left, plan in customers:
        new = renew(f"evt-{user}", user)
        print(json.dumps({"left": left, "lost": max(0, min(left + plan, 3 * plan) - new)}))


if __name__ == "__main__":
    main(sys.argv[1])
