def test_c1_1_one():
    pass


def test_c1_1_two(rpc):
    pass


def test_c1_1_three():
    pass


def test_without_a_line():
    pass
