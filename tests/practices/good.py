"""Tables that keep every practice: forms of keys, with any of the records.

A form takes a Make and gives pairs (key, micros) in the order of writing. It says in its docstring
who has such keys, and what a careless eye could take it for.
"""

import datetime
import uuid

from practices.case import Case, Read, Table, Write
from practices.records import Plain, any_record
from practices.words import BASE62, CITIES, COUNTRIES, CROCKFORD, LANGUAGES, UNICODE_WORDS

FORMS = []
LAST = 2**63 - 1
GEOHASH = "0123456789bcdefghjkmnpqrstuvwxyz"


def form(function):
    FORMS.append(function)
    return function


def utc(micros, pattern="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.datetime.fromtimestamp(micros / 1e6, datetime.UTC).strftime(pattern)


def ulid(make, micros):
    return base32(micros // 1000, 10) + make.text_of(CROCKFORD, 16)


def base32(value, width):
    return "".join(CROCKFORD[value >> 5 * i & 31] for i in reversed(range(width)))


def uuid7(make, micros):
    bits = micros // 1000 << 80 | 7 << 76 | make.rng.getrandbits(12) << 64
    return str(uuid.UUID(int=bits | 2 << 62 | make.rng.getrandbits(62)))


def snowflake(make, micros):
    return (micros // 1000 - 1_288_834_974_657) << 22 | make.rng.getrandbits(22)


def object_id(make, micros):
    return f"{micros // 1_000_000:08x}{make.hex(16)}"


def in_time(make, key_of):
    """Rows in the order of their times."""
    return [(key_of(micros), micros) for micros in make.times()]


def once_each(make, keys):
    """Things written once each, in an order that has nothing to do with their names."""
    keys = list(keys)
    make.rng.shuffle(keys)
    return list(zip(keys, make.times(len(keys)), strict=True))


def at_random(make, key_of):
    """As many different ones as the table has rows."""
    return once_each(make, make.distinct(make.count, key_of))


# --- numbers ---


@form
def padded_numbers(make):
    """Articles of stores: numbers of fixed width."""
    stores = make.distinct(40, lambda: make.digits(4))
    regions = make.rng.sample(COUNTRIES, 6)
    return at_random(make, lambda: make.join(make.pick(regions), make.pick(stores), make.digits(8)))


@form
def account_numbers(make):
    """Ten digits at random: some look like seconds since 1970, or like a telephone."""
    first = make.pick(["", "15", "16", "17"])
    return at_random(make, lambda: first + make.digits(10 - len(first)))


@form
def meter_numbers(make):
    """Sixteen digits at random: a tenth pass the checksum of payment cards."""
    grids = make.rng.sample(COUNTRIES, 5)
    return at_random(make, lambda: make.join(make.pick(grids), make.digits(16)))


@form
def article_numbers(make):
    """EAN-13, whose last digit is a checksum, as that of a card is."""

    def ean():
        twelve = make.pick(["400", "871", "500", "300"]) + make.digits(9)
        total = sum(int(each) * (1, 3)[place % 2] for place, each in enumerate(twelve))
        return f"{twelve}{-total % 10}"

    return at_random(make, ean)


@form
def reversed_numbers(make):
    """Ids that are handed out in turn, their digits reversed: what the page advises."""
    width = make.rng.randint(6, 9)
    first = make.rng.randrange(10 ** (width - 1))
    word = make.pick(["", "u", "member" + make.mark])
    keys = [word + f"{first + i:0{width}d}"[::-1] for i in range(make.count)]
    return list(zip(keys, make.times(len(keys)), strict=True))


@form
def orders_of_customers(make):
    """Each customer's orders are numbered: there are as many fronts as customers."""
    counts = dict.fromkeys(make.entities(200), 0)
    customers = list(counts)

    def key(_):
        customer = make.pick(customers)
        counts[customer] += 1
        return make.join(customer, f"{counts[customer]:06d}")

    return in_time(make, key)


# --- time behind many values ---


@form
def reversed_time_of_users(make):
    """The latest of a user first."""
    users = make.entities(make.rng.randint(120, 600))
    unit = make.pick([1, 1000])
    return in_time(make, lambda micros: make.join(make.pick(users), LAST - micros // unit))


@form
def padded_reversed_time(make):
    users = make.entities(make.rng.randint(120, 600))
    top = 10**13 - 1
    return in_time(make, lambda micros: make.join(make.pick(users), f"{top - micros // 1000:013d}"))


@form
def dates_of_devices(make):
    """ISO dates and times, of hundreds of devices."""
    devices = make.entities(make.rng.randint(100, 500))
    patterns = ["%Y%m%d%H%M%S", "%Y%m%d-%H%M%S"]
    if make.mark != ":":  # or the delimiter would be within a value
        patterns += ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M"]
    pattern = make.pick(patterns)
    return in_time(make, lambda micros: make.join(make.pick(devices), utc(micros, pattern)))


@form
def dense_devices(make):
    """Devices are numbered without a gap, and all of them speak all the time."""
    devices = [f"{make.noun()}-{i:04d}" for i in range(1, make.rng.randint(150, 500))]
    return in_time(make, lambda micros: make.join(make.pick(devices), micros // 1000))


@form
def days_of_stocks(make):
    tickers = make.distinct(300, lambda: make.text_of("ABCDEFGHIKLMNOPRSTUW", 4))
    market = make.pick(["XETRA", "NYSE", "TSE"])
    return in_time(
        make, lambda micros: make.join(market, make.pick(tickers), utc(micros, "%Y-%m-%d"))
    )


@form
def flights(make):
    """Airports are few, pairs of them many; the date is behind them."""
    airports = make.distinct(40, lambda: make.text_of("ABCDEFGHIKLMNOPRSTUVWXYZ", 3))

    def key(micros):
        start, end = make.rng.sample(airports, 2)
        return make.join(f"{start}-{end}", utc(micros, "%Y-%m-%d"), f"BA{make.digits(4)}")

    return in_time(make, key)


@form
def metrics_of_hosts(make):
    """Time series by name and labels, the hour behind."""
    hosts = make.distinct(150, lambda: f"{make.pick(['web', 'db', 'mq'])}-{make.digits(3)}")
    names = ["cpu.user", "cpu.sys", "mem.free", "disk.read", "net.in", "net.out"]

    def key(micros):
        labels = f"dc={make.pick(['fra', 'ams', 'lon'])};host={make.pick(hosts)}"
        return make.join(make.pick(names), labels, utc(micros, "%Y%m%d%H"))

    return in_time(make, key)


@form
def salted(make):
    """A bucket from the device's name, so that a device's rows stay together."""
    devices = make.entities(200)
    buckets = make.pick([8, 16, 20, 64])

    def key(micros):
        place = make.rng.randrange(len(devices))
        return make.join(f"{place * 7 % buckets:02d}", devices[place], micros // 1000)

    return in_time(make, key)


@form
def hash_prefixed(make):
    """Four hexadecimal digits of a customer's hash, then all in clear: his rows stay together."""
    customers = {each: make.hex(4) for each in make.entities(150)}
    names = list(customers)

    def key(micros):
        name = make.pick(names)
        return make.join(customers[name], name, utc(micros, "%Y%m%dT%H%M%S"))

    return in_time(make, key)


@form
def rising_ids_of_entities(make):
    """ULIDs, UUIDs of version 7, snowflakes, ObjectIds: behind what many write at a time."""
    owners = make.entities(make.rng.randint(120, 400))
    event = make.pick([ulid, uuid7, snowflake, object_id])
    return in_time(make, lambda micros: make.join(make.pick(owners), event(make, micros)))


# --- tenants, users, ids at random ---


@form
def events_of_uuids(make):
    """Accounts are UUIDs, each with a dozen rows."""
    accounts = [make.uuid() for _ in range(make.count // 12)]
    kinds = ["login", "logout", "view", "buy"]
    return in_time(
        make,
        lambda micros: make.join(make.pick(accounts), make.pick(kinds), LAST - micros),
    )


@form
def tenants(make):
    """A tenant's things by kind and id."""
    companies = make.companies(30)
    kinds = ["order", "invoice", "user", "item"]
    ids = make.pick([make.uuid, lambda: make.digits(7), lambda: make.text_of(BASE62, 11)])
    return at_random(make, lambda: make.join(make.pick(companies), make.pick(kinds), ids()))


@form
def single_table(make):
    """Several kinds of rows in one table, customers and what belongs to them side by side."""
    keys = []
    for customer in make.entities(max(1, make.count // 6)):
        keys.append(make.join("CUSTOMER", customer))
        keys += [make.join("CUSTOMER", customer, "ADDRESS", each) for each in ("home", "work")]
        keys += [make.join("CUSTOMER", customer, "ORDER", make.digits(8)) for _ in range(3)]
    return once_each(make, dict.fromkeys(keys))


@form
def graph(make):
    nodes = make.entities(300)
    relation = make.pick(["follows", "likes", "knows", "cites"])
    return at_random(make, lambda: make.join(make.pick(nodes), relation, make.pick(nodes)))


@form
def videos_of_channels(make):
    channels = make.entities(150)
    return at_random(make, lambda: make.join(make.pick(channels), make.text_of(BASE62, 11)))


@form
def sessions(make):
    """User, then an id at random of a session."""
    users = make.entities(250)
    return in_time(make, lambda micros: make.join(make.pick(users), make.hex(16)))


# --- names ---


@form
def reversed_domains(make):
    """Pages of many sites."""
    sites = [".".join(reversed(each.split("."))) for each in make.domains(250)]
    return at_random(make, lambda: f"{make.pick(sites)}/{make.noun()}/{make.slug()}")


@form
def places(make):
    """From the continent to the street: the common first."""
    return at_random(make, lambda: make.join(*make.pick(CITIES), make.slug() + "-street"))


@form
def geohashes(make):
    """Letters and digits that no hash made: nearby places are neighbours."""
    areas = [make.text_of(GEOHASH, 4) for _ in range(30)]
    return at_random(
        make, lambda: make.join(make.pick(areas) + make.text_of(GEOHASH, 4), make.slug())
    )


@form
def quadkeys(make):
    """Map tiles: digits of one width, of which none is above 3."""
    areas = [make.text_of("0123", 7) for _ in range(20)]
    return at_random(make, lambda: make.pick(areas) + make.text_of("0123", 8))


@form
def file_paths(make):
    folders = make.distinct(80, lambda: f"{make.noun()}/{make.slug()}/{make.noun()}")
    ends = ["txt", "png", "c", "md", "json"]
    return at_random(make, lambda: f"{make.pick(folders)}/{make.slug()}.{make.pick(ends)}")


@form
def words_of_languages(make):
    """Dictionaries: a language, a word, many of them beyond ASCII."""
    languages = make.rng.sample(LANGUAGES, 6)
    words = UNICODE_WORDS
    return at_random(
        make, lambda: make.join(make.pick(languages), make.pick(words), make.slug(" "))
    )


@form
def products(make):
    """Names, some with a number that is a part of the name: models, sizes."""
    models = ["mk2", "gti8", "v60", "c3", "747", "xl", "s", "m", "911"]
    ends = [""] * 20 + [f"-{each}" for each in models]
    brands = make.companies(60)
    return at_random(make, lambda: make.join(make.pick(brands), make.slug() + make.pick(ends)))


@form
def headlines(make):
    """Titles as they are, blanks and all, of an encyclopedia."""
    return at_random(make, lambda: make.join(make.pick(LANGUAGES), make.phrase(3).capitalize()))


@form
def genome(make):
    """Chromosome and place, both padded."""
    samples = make.entities(40)
    steps = sorted(make.rng.sample(range(250_000_000), make.count))
    keys = [
        make.join(make.pick(samples), f"chr{1 + i % 22:02d}", f"{step:09d}")
        for i, step in enumerate(steps)
    ]
    return once_each(make, dict.fromkeys(keys))


@form
def addresses_of_hosts(make):
    """IPv4, each part padded, by network."""
    nets = [f"{make.rng.randrange(256):03d}.{make.rng.randrange(256):03d}" for _ in range(30)]
    hosts = [f"{make.rng.randrange(256):03d}.{make.rng.randrange(256):03d}" for _ in range(60)]
    key = "{}.{}".format
    return at_random(
        make, lambda: make.join(key(make.pick(nets), make.pick(hosts)), make.noun())
    )


@form
def containers(make):
    """Ships' containers: owner, six digits, a check digit; then the port."""
    owners = [make.text_of("ABCDEFGHKLMNPRST", 3) + "U" for _ in range(25)]
    ports = [city for _, _, city in CITIES]
    return at_random(
        make, lambda: make.join(make.pick(owners) + make.digits(7), make.pick(ports))
    )


@form
def names_and_fixed_bytes(make):
    """A name in clear, then eight bytes of a number, largest first: in their order by byte."""
    owners = make.entities(200)
    return in_time(
        make, lambda micros: f"{make.pick(owners)}#".encode() + (LAST - micros).to_bytes(8)
    )


# --- whole cases ---


def bytes_of(key):
    return key.encode() if isinstance(key, str) else key


def rows_of(keys, record):
    return [(bytes_of(key), record.cells(micros)) for key, micros in keys]


# Those that broken tables use where the keys are not what is broken.
SIMPLE = (padded_numbers, orders_of_customers, dates_of_devices, tenants, places, file_paths,
          single_table, graph, reversed_time_of_users)  # fmt: skip


def table_name(make):
    return make.slug(make.pick("-_"))


def plain_table(make):
    """A good table of small rows."""
    record = Plain(make)
    return Table(table_name(make), record.families, rows_of(make.pick(SIMPLE)(make), record))


def point_reads(make, keys):
    return [Read(keys=(make.pick(keys),)) for _ in range(make.rng.randint(50, 200))]


def group_reads(make, keys):
    """Ranges that begin at a key, and a few rows of them; many keys in one request."""
    reads = [Read(ranges=((make.pick(keys), b""),), limit=20) for _ in range(60)]
    return reads + [Read(keys=tuple(make.rng.sample(keys, 20))) for _ in range(20)]


def batches(make, table, record):
    """Rows all over the table are written anew, a hundred at a time."""
    keys = make.rng.sample(table.keys(), min(200, len(table.keys())))
    rows = [(key, record.cells(make.now)) for key in keys]
    return [Write(tuple(part)) for part in (rows[:100], rows[100:]) if part]


def good_traffic(make, table, record):
    keys = table.keys()
    kind = make.pick(["none", "none", "points", "groups", "batches"])
    if kind == "points":
        return point_reads(make, keys)
    if kind == "groups":
        return group_reads(make, keys)
    return batches(make, table, record) if kind == "batches" else []


def good_table(make):
    """One table of any form and any record, perhaps with healthy traffic."""
    record = any_record(make)
    keys = make.pick(FORMS)
    table = Table(table_name(make), record.families, rows_of(keys(make), record))
    traffic = good_traffic(make, table, record)
    appearance = f"{keys.__name__}, {type(record).__name__.lower()}"
    return Case(appearance + (", traffic" if traffic else ""), tables=[table], traffic=traffic)


def good_instance(make):
    """A few tables that have nothing to do with each other."""
    tables = []
    for name in make.rng.sample(["users", "orders", "readings", "pages", "prices", "events"], 4):
        make.count = make.rng.randint(300, 900)
        tables.append(plain_table(make))
        tables[-1].name = name
    return Case("instance of four tables", tables=tables, asked=4)
