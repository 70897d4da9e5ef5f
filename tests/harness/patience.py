"""How long a test waits for what must happen.

Whoever waits so long in vain fails, so it is long: that says that a server hangs, never that a
machine is slow or has much else to do. pytest.ini gives each test twice that."""

PATIENCE_SECONDS = 300
