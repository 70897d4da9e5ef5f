"""Tables whose keys break one practice, in many appearances.

An appearance takes a Make and gives pairs (key, micros) in the order of writing, as forms in
good.py do; `broken` names the practice. The rows are good ones.
"""

import base64
import collections
import hashlib
import itertools
import struct
import zlib

from practices.case import Case, Table
from practices.good import (
    LAST,
    at_random,
    base32,
    in_time,
    object_id,
    rows_of,
    snowflake,
    table_name,
    ulid,
    utc,
    uuid7,
)
from practices.records import Plain
from practices.words import CITIES, FIRST_NAMES, LAST_NAMES

KEYS = collections.defaultdict(list)  # {practice: [function]}


def broken(practice):
    def note(function):
        KEYS[practice].append(function)
        return function

    return note


def case_of(practice, appearance, make):
    record = Plain(make)
    if practice in ("B21", "B23"):  # a front shows best where it has moved for a while
        make.count = max(make.count, 1000)
    rows = rows_of(appearance(make), record)
    return Case(appearance.__name__, tables=[Table(table_name(make), record.families, rows)])


# --- B16: keep row keys short ---


@broken("B16")
def whole_sentences(make):
    return at_random(make, lambda: make.join(make.slug(), make.phrase(make.rng.randint(40, 120))))


@broken("B16")
def documents_as_keys(make):
    """A JSON object, as somebody's cache had it."""
    return at_random(make, lambda: make.document().decode() + make.document().decode() * 2)


@broken("B16")
def deep_paths(make):
    folders = make.distinct(60, lambda: "/".join(make.slug() for _ in range(30)))
    return at_random(make, lambda: f"{make.pick(folders)}/{make.slug()}.txt")


@broken("B16")
def long_names_of_parts(make):
    """What each part is stands in the key, at length."""
    words = [make.phrase(3).replace(" ", "_") + "_identifier" for _ in range(9)]
    return at_random(make, lambda: make.join(*(f"{word}={make.slug()}" for word in words)))


# --- B17: several delimited values ---


@broken("B17")
def no_delimiter(make):
    """Values of any width, one behind the other: where does one end?"""
    companies, things = make.companies(40), ["order", "invoice", "user", "cart"]
    return at_random(make, lambda: make.pick(companies) + make.pick(things) + make.slug(""))


@broken("B17")
def delimiter_within_values(make):
    """Titles with the very mark that stands between the parts."""
    mark = make.mark
    titles = [make.noun() + (mark + make.noun()) * make.pick([0, 0, 1, 2]) for _ in range(300)]
    owners = make.companies(60)
    return at_random(make, lambda: mark.join((make.pick(owners), make.pick(titles), make.slug())))


@broken("B17")
def delimiters_of_all_kinds(make):
    """Each writer has a delimiter of its own."""
    companies = make.companies(50)
    kinds = ["order", "invoice", "user"]
    return at_random(make, lambda: make.pick("#:|/").join(
        (make.pick(companies), make.pick(kinds), make.slug())
    ))  # fmt: skip


# --- B18: pad integers ---


def any_width(make):
    """A number of one to six digits, each width as often."""
    return make.rng.randrange(10 ** make.rng.randint(1, 6))


@broken("B18")
def numbers_of_users(make):
    users = make.distinct(150, lambda: make.text_of("abcdefghkmnpqrst", 5))
    return at_random(make, lambda: make.join(make.pick(users), any_width(make)))


@broken("B18")
def numbers_in_the_middle(make):
    sites = make.companies(60)
    parts = ["temp", "hum", "volt"]
    return at_random(
        make, lambda: make.join(make.pick(sites), f"room{any_width(make)}", make.pick(parts))
    )


@broken("B18")
def tiles(make):
    layers = make.distinct(6, make.slug)

    def key():
        zoom = make.rng.randint(4, 14)
        x, y = make.rng.randrange(2**zoom), make.rng.randrange(2**zoom)
        return f"{make.pick(layers)}/{zoom}/{x}/{y}"

    return at_random(make, key)


@broken("B18")
def versions_of_packages(make):
    packages = make.distinct(200, make.slug)
    part = make.rng.randrange

    def key():
        return make.join(make.pick(packages), f"{part(4)}.{part(30)}.{part(200)}")

    return at_random(make, key)


@broken("B18")
def seats(make):
    halls = make.distinct(80, lambda: make.slug())
    row = make.rng.randrange
    return at_random(
        make, lambda: make.join(make.pick(halls), f"row {row(1, 40)}", f"seat {row(1, 140)}")
    )


# --- B19: readable text, no raw bytes ---


@broken("B19")
def packed_integers(make):
    tenants = [make.rng.getrandbits(32) for _ in range(30)]
    return at_random(
        make,
        lambda: struct.pack(
            ">IIH", make.pick(tenants), make.rng.getrandbits(32), make.rng.randrange(9)
        ),
    )


@broken("B19")
def little_endian(make):
    """The order of the bytes is not that of the numbers."""
    tenants = [make.rng.randrange(5000) for _ in range(60)]
    return at_random(
        make,
        lambda: struct.pack("<HI", make.pick(tenants), make.rng.randrange(10**6)),
    )


@broken("B19")
def raw_doubles(make):
    """A place on earth as two doubles."""
    return at_random(
        make, lambda: struct.pack(">dd", make.rng.uniform(-90, 90), make.rng.uniform(-180, 180))
    )


@broken("B19")
def messages(make):
    """A protobuf as key."""
    owners = [make.slug().encode() for _ in range(80)]

    def key():
        owner = make.pick(owners)
        number = make.rng.getrandbits(32) | 1 << 31
        varint = bytes([number >> 7 * i & 127 | 128 for i in range(4)]) + bytes([number >> 28])
        return b"\x0a" + bytes([len(owner)]) + owner + b"\x10" + varint

    return at_random(make, key)


@broken("B19")
def encoded_structs(make):
    """Packed, and then in base64."""
    tenants = [make.rng.randrange(500) for _ in range(30)]
    return at_random(
        make,
        lambda: base64.b64encode(
            struct.pack("<IId", make.pick(tenants), make.rng.randrange(10**6), make.rng.random())
        ),
    )


@broken("B19")
def four_bytes_of_addresses(make):
    """A network's host, and a port."""
    nets = [make.rng.randbytes(2) for _ in range(30)]
    ports = [struct.pack(">H", each) for each in (22, 80, 443)]
    return at_random(
        make, lambda: make.pick(nets) + make.rng.randbytes(2) + make.pick(ports)
    )


# --- B20: a common value first, a granular one last ---


@broken("B20")
def streets_before_cities(make):
    return at_random(
        make, lambda: make.join(f"{make.slug()}-{make.digits(3)}", *reversed(make.pick(CITIES)))
    )


@broken("B20")
def articles_before_shops(make):
    shops = make.companies(8)
    kinds = ["food", "tools", "books", "toys"]
    return at_random(
        make,
        lambda: make.join("A" + make.digits(7), make.pick(kinds), make.pick(shops)),
    )


@broken("B20")
def sensors_before_buildings(make):
    buildings = make.distinct(12, make.slug)
    sites = [city for _, _, city in CITIES[:5]]
    return at_random(
        make,
        lambda: make.join(f"SN{make.digits(8)}", make.pick(buildings), make.pick(sites)),
    )


@broken("B20")
def files_before_folders(make):
    folders = make.distinct(10, make.slug)
    return at_random(
        make, lambda: f"{make.slug('_')}_{make.noun()}.txt/{make.pick(folders)}/archive"
    )


@broken("B20")
def users_before_tenants(make):
    tenants = make.companies(9)
    return at_random(
        make, lambda: make.join(make.text_of("abcdefghkmnprst", 9), "user", make.pick(tenants))
    )


# --- B21: no time first ---

PATTERNS = (
    "%Y-%m-%dT%H:%M:%SZ", "%Y%m%d%H%M%S", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d/%H/%M", "%Y%m%d",
    "%Y.%m.%d %H.%M", "%Y-%j-%H", "%y%m%d-%H%M", "%Y_%m_%d_%H",
)  # fmt: skip


def tail_of(make):
    """What stands behind the time: many values."""
    owners = make.entities(300)
    return lambda: make.pick(owners)


@broken("B21")
def dates_first(make):
    pattern, tail = make.pick(PATTERNS), tail_of(make)
    return in_time(make, lambda micros: make.join(utc(micros, pattern), tail(), make.digits(4)))


@broken("B21")
def epochs_first(make):
    unit, tail = make.pick([1, 1000, 1_000_000]), tail_of(make)
    return in_time(make, lambda micros: make.join(micros // unit, tail()))


@broken("B21")
def reversed_epochs_first(make):
    top = make.pick([LAST, 10**13 - 1])
    unit, tail = (1 if top == LAST else 1000), tail_of(make)
    return in_time(make, lambda micros: make.join(top - micros // unit, tail()))


@broken("B21")
def a_constant_word_and_a_time(make):
    words = make.join(*(make.noun() for _ in range(make.pick([1, 1, 2]))))
    pattern, tail = make.pick([*PATTERNS, None]), tail_of(make)

    def key(micros):
        time = utc(micros, pattern) if pattern else micros // 1000
        return make.join(words, time, tail())

    return in_time(make, key)


@broken("B21")
def few_words_and_a_time(make):
    """Three kinds of events are three places at which all is written."""
    kinds = make.rng.sample(["click", "view", "buy", "error", "info", "debug"], 3)
    pattern, tail = make.pick([*PATTERNS[:2], None]), tail_of(make)

    def key(micros):
        time = utc(micros, pattern) if pattern else micros // 1_000_000
        return make.join(make.pick(kinds), time, tail())

    return in_time(make, key)


@broken("B21")
def hexadecimal_times_first(make):
    tail = tail_of(make)
    unit, width = make.pick([(1_000_000, 8), (1000, 11), (1, 14)])
    return in_time(make, lambda micros: make.join(f"{micros // unit:0{width}x}", tail()))


@broken("B21")
def local_dates_first(make):
    """As people write them; within a day they are still one front."""
    pattern = make.pick(["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d-%b-%Y %H:%M"])
    tail = tail_of(make)
    return in_time(make, lambda micros: make.join(utc(micros, pattern), tail()))


@broken("B21")
def raw_times_first(make):
    tail = tail_of(make)
    unit = make.pick([1, 1000])
    return in_time(make, lambda micros: (micros // unit).to_bytes(8) + tail().encode())


@broken("B21")
def rising_ids_first(make):
    """Ids that begin with their time: ULIDs, UUIDs of version 7, snowflakes, ObjectIds."""
    event = make.pick([ulid, uuid7, snowflake, object_id])
    return in_time(make, lambda micros: str(event(make, micros)))


@broken("B21")
def rising_ids_behind_a_word(make):
    word = make.noun()
    event = make.pick([ulid, uuid7, snowflake, object_id])
    return in_time(make, lambda micros: make.join(word, event(make, micros)))


@broken("B21")
def weeks_first(make):
    tail = tail_of(make)
    return in_time(make, lambda micros: make.join(utc(micros, "%G-W%V-%u#%H%M"), tail()))


# --- B22: related rows grouped ---


@broken("B22")
def salted_row_by_row(make):
    """The salt is drawn for each row, so a user's rows are everywhere."""
    users = make.entities(60)
    width = make.pick([3, 4])
    return in_time(
        make, lambda micros: make.join(make.digits(width), make.pick(users), micros // 1000)
    )


@broken("B22")
def buckets_in_turn(make):
    users = make.entities(80)
    turns = iter(range(10**9))
    buckets = make.pick([97, 100, 256])
    return in_time(
        make,
        lambda micros: make.join(
            f"{next(turns) % buckets:03d}", make.pick(users), LAST - micros
        ),
    )


@broken("B22")
def random_ids_before_owners(make):
    users = make.entities(60)
    return in_time(make, lambda micros: make.join(make.hex(8), make.pick(users), micros // 1000))


@broken("B22")
def event_ids_alone(make):
    """Whose event it is stands in a column."""
    return in_time(make, lambda micros: make.uuid())


# --- B23: sequential ids ---


def numbered(make, key_of, step=1):
    """Handed out in turn, each written when it was."""
    first = make.pick([1, 1, 1000, 100_000, make.rng.randrange(10**7)])
    times = make.times()
    return [(key_of(first + i * step), micros) for i, micros in enumerate(times)]


@broken("B23")
def plain_numbers(make):
    return numbered(make, str)


@broken("B23")
def padded_in_turn(make):
    width = make.rng.randint(8, 12)
    return numbered(make, lambda number: f"{number:0{width}d}")


@broken("B23")
def words_and_numbers(make):
    word = make.pick(["Product ", "user", "customer-", "INV", "Order No. ", "ticket_", "row:"])
    width = make.pick([0, 0, 8])
    return numbered(make, lambda number: f"{word}{number:0{width}d}")


@broken("B23")
def numbers_before_a_part(make):
    parts = ["head", "body", "tail"]
    return numbered(make, lambda number: make.join(f"{number:09d}", make.pick(parts)))


@broken("B23")
def numbers_with_gaps(make):
    """Some were rolled back, some deleted."""
    gap = make.pick([3, 10, 40])
    steps = (make.rng.randint(1, gap) for _ in range(make.count))
    numbers = itertools.accumulate(steps, initial=make.rng.randrange(10**6))
    return numbered(make, lambda _: f"{next(numbers):010d}")


@broken("B23")
def numbers_in_tens(make):
    return numbered(make, lambda number: f"{number:010d}", step=make.pick([2, 5, 10, 100]))


@broken("B23")
def numbers_in_base_36(make):
    return numbered(make, lambda number: base32(number, 7))


@broken("B23")
def numbers_in_hexadecimal(make):
    return numbered(make, lambda number: f"{number:08x}")


@broken("B23")
def raw_numbers(make):
    return numbered(make, lambda number: number.to_bytes(8))


@broken("B23")
def numbers_of_several_kinds(make):
    """A sequence of each kind."""
    counts = dict.fromkeys(make.rng.sample(["customer", "order", "item", "invoice"], 3), 0)
    kinds = list(counts)

    def key(_):
        kind = make.pick(kinds)
        counts[kind] += 1
        return make.join(kind, f"{counts[kind]:08d}")

    return in_time(make, key)


@broken("B23")
def numbers_of_a_year(make):
    """INV-2026-00017: the year is a constant for a year."""
    word = make.pick(["INV", "PO", "CASE"])
    return numbered(make, lambda number: f"{word}-{utc(make.now, '%Y')}-{number:07d}")


# --- B26: no hashes ---


def hashed(make, digest):
    """The hash of a key that would have been good."""
    users = make.entities(150)
    return in_time(make, lambda micros: digest(f"{make.pick(users)}#{micros}".encode()))


@broken("B26")
def hexadecimal_hashes(make):
    name = make.pick(["md5", "sha1", "sha256"])
    return hashed(make, lambda data: hashlib.new(name, data).hexdigest())


@broken("B26")
def raw_hashes(make):
    name = make.pick(["md5", "sha1", "sha256"])
    return hashed(make, lambda data: hashlib.new(name, data).digest())


@broken("B26")
def hashes_in_base64(make):
    name = make.pick(["md5", "sha256"])
    code = make.pick([base64.b64encode, base64.urlsafe_b64encode])
    return hashed(make, lambda data: code(hashlib.new(name, data).digest()))


@broken("B26")
def short_hashes(make):
    """Of 32 bits, hexadecimal."""
    return hashed(make, lambda data: f"{zlib.crc32(data):08x}")


@broken("B26")
def decimal_hashes(make):
    """Of 64 bits, as a number of twenty digits."""

    def digest(data):
        return f"{int.from_bytes(hashlib.blake2b(data, digest_size=8).digest()):020d}"

    return hashed(make, digest)


@broken("B26")
def hashes_behind_a_word(make):
    word = make.noun()
    return hashed(make, lambda data: make.join(word, hashlib.md5(data).hexdigest()))


@broken("B26")
def hashes_before_the_key(make):
    """The whole key's hash, and then the key: no two neighbours have anything in common."""
    return hashed(
        make, lambda data: hashlib.sha1(data).hexdigest()[:10] + make.mark + data.decode()
    )


# --- B27: no personal data ---


def luhn(digits):
    """The digit that makes it a card's number."""
    doubled = [int(each) * (2 if place % 2 == 0 else 1) for place, each in enumerate(digits[::-1])]
    return str(-sum(each // 10 + each % 10 for each in doubled) % 10)


def card(make):
    prefix, width = make.pick([("4", 15), ("51", 15), ("55", 15), ("37", 14), ("6011", 15)])
    digits = prefix + make.digits(width - len(prefix))
    return digits + luhn(digits)


def in_fours(digits, mark):
    return mark.join(digits[i : i + 4] for i in range(0, len(digits), 4))


def social(make):
    return f"{make.rng.randint(100, 665)}-{make.rng.randint(10, 99)}-{make.rng.randint(1000, 9999)}"


def phone(make):
    country = make.pick(["+1", "+49", "+33", "+44", "+39"])
    return country + make.pick("2345679") + make.digits(9)


def iban(make):
    """Of Germany, with its checksum."""
    account = make.digits(18)
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def cpf(make):
    """Brazil's, with its two checksums."""
    digits = make.digits(9)
    for first in (10, 11):
        total = sum(int(each) * (first - place) for place, each in enumerate(digits))
        digits += str(-total % 11 % 10)
    return f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"


@broken("B27")
def mail_addresses(make):
    end = make.pick(["", "profile", "cart"])
    return at_random(make, lambda: make.join(make.mail(), end) if end else make.mail())


@broken("B27")
def mail_addresses_behind(make):
    tenants = make.companies(20)
    return at_random(make, lambda: make.join(make.pick(tenants), "user", make.mail()))


@broken("B27")
def cards(make):
    mark = make.pick(["", "", "-", " "])
    word = make.pick(["", "card" + make.mark])
    return at_random(make, lambda: word + in_fours(card(make), mark))


@broken("B27")
def cards_behind(make):
    shops = make.companies(30)
    return at_random(make, lambda: make.join(make.pick(shops), card(make), make.digits(6)))


@broken("B27")
def social_numbers(make):
    word = make.pick(["", "cust" + make.mark, "ssn" + make.mark])
    return at_random(make, lambda: word + social(make))


@broken("B27")
def telephones(make):
    tenants = make.companies(20)
    has_tenant = make.chance(0.5)
    return at_random(
        make, lambda: make.join(make.pick(tenants), phone(make)) if has_tenant else phone(make)
    )


@broken("B27")
def accounts_of_banks(make):
    banks = make.companies(12)
    return at_random(make, lambda: make.join(make.pick(banks), iban(make)))


@broken("B27")
def taxpayers(make):
    return at_random(make, lambda: make.join("tax", cpf(make)))


@broken("B27")
def full_names(make):
    """And the day of birth."""

    def key():
        name = f"{make.pick(FIRST_NAMES)} {make.pick(LAST_NAMES)}".title()
        born = f"19{make.rng.randint(40, 99)}-{make.rng.randint(1, 12):02d}-1{make.digits(1)}"
        return make.join(name, born)

    return at_random(make, key)


# --- B28: domains reversed, and many ---


@broken("B28")
def domains_as_written(make):
    sites = make.domains(300)
    return at_random(make, lambda: f"{make.pick(sites)}/{make.noun()}/{make.slug()}")


@broken("B28")
def hosts_alone(make):
    firms = make.distinct(300, lambda: f"{make.noun()}{make.noun()}.{make.pick(['com', 'org'])}")
    hosts = ["www", "mail", "ftp", "api", "shop", "ns1"]
    return at_random(make, lambda: f"{make.pick(hosts)}.{make.pick(firms)}")


@broken("B28")
def whole_addresses(make):
    sites = make.domains(300)
    scheme = make.pick(["https://", "http://"])
    return at_random(make, lambda: f"{scheme}{make.pick(sites)}/{make.noun()}/{make.slug()}.html")


@broken("B28")
def domains_behind_a_word(make):
    sites = make.domains(250)
    word = make.pick(["site", "page", "crawl"])
    return at_random(make, lambda: make.join(word, make.pick(sites), make.slug()))


@broken("B28")
def one_domain_for_all(make):
    """Reversed, but all rows begin with the same."""
    site = ".".join(reversed(make.domains(1)[0].split(".")))
    return at_random(make, lambda: f"{site}/{make.noun()}/{make.slug()}/{make.slug()}")

