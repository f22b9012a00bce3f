"""The front end: it sends the order to the shop, and sends it again when that fails.

**Stops:** a purchase that is lost to a passing failure; the order's key makes it one purchase.
**Lets through:** a push for each attempt, where the push is sent before the purchase is certain.
"""

import importlib
import logging
from datetime import datetime

ATTEMPTS = 3  # what a user with a weak connection does before giving up

logger = logging.getLogger(__name__)


def order(placement: str, key: str, user: int, product: int, now: datetime) -> None:
    """Buy through the placement (the name of its file); raises what the last attempt raised."""
    shop = importlib.import_module(placement)
    attempt = 1
    while True:
        try:
            return shop.buy(key, user, product, now)
        except Exception as error:
            logger.warning("order %s, attempt %d: %s", key, attempt, error)
            if attempt == ATTEMPTS:
                raise
            attempt += 1
