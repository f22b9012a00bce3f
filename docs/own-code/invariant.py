"""What must hold once every redemption is over."""


def broken(connection) -> list[str]:
    """A sentence for each thing that is wrong."""
    left, = connection.execute("SELECT uses_left FROM coupons").fetchone()
    orders, = connection.execute("SELECT count(*) FROM orders").fetchone()
    return [] if left + orders == 10 else [f"{orders} orders, but {10 - left} uses counted"]
