"""A directory of 10,000 backups: found at the start, and listed, each once, in pages."""

import shutil

from harness.backups import Backups

BACKUPS = 10_000


def test_ten_thousand_backups_are_listed_in_pages(fresh_server, administer):
    server = fresh_server()
    admin = administer(server.host)
    backups = Backups(admin, admin.create_instance("i"))
    admin.create_table(backups.instance, "t")
    made = backups.create("first", "t")
    server.stop()
    # A backup of an empty table is its manifest, and its name is that of its directory.
    first = server.data / "backups" / "p,i,c,first"
    names = {made.name}
    for number in range(1, BACKUPS):
        shutil.copytree(first, first.with_name(f"p,i,c,b{number}"))
        names.add(backups.name(f"b{number}"))
    server.start()
    tables = administer(server.host).tables
    for page_size in (0, 3000):
        request = {"parent": backups.cluster, "page_size": page_size}
        listed = [each.name for each in tables.list_backups(request=request)]
        assert len(listed) == BACKUPS
        assert set(listed) == names
