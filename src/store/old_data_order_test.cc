/* In which order tables count, and which do not: what order_tables and leave_out_replaced make of
 * tables that say this or that of themselves. */
#include "store/old_data.h"

#include <algorithm>

extern "C" {
#include "base/testing/testing.h"
}

namespace {

enum : uint64_t { VALUE = 1 };

std::string as_in_tables(const std::string &key, uint64_t sequence)
{
    uint64_t packed = sequence << 8 | VALUE;
    return key + std::string(reinterpret_cast<const char *>(&packed), sizeof packed);
}

/* Keys from `first` to `last`, with sequence numbers from `least` to `greatest`. */
found_table keys(uint64_t number, const char *first, const char *last, uint64_t least,
                 uint64_t greatest)
{
    found_table made;
    made.number = number;
    made.summary.has_keys = true;
    made.summary.smallest = as_in_tables(first, greatest);
    made.summary.largest = as_in_tables(last, least);
    made.summary.least_sequence = least;
    made.summary.greatest_sequence = greatest;
    return made;
}

found_table deleting(found_table table, const char *from, const char *to, uint64_t sequence)
{
    table.summary.deleted.push_back({from, to, sequence});
    return table;
}

found_family ordered(std::vector<found_table> tables, bool is_exact = false)
{
    found_family family;
    family.tables = std::move(tables);
    order_tables(&family, is_exact);
    return family;
}

const found_table &table_of(const found_family &family, uint64_t number)
{
    auto found = std::find_if(family.tables.begin(), family.tables.end(),
                              [&](const found_table &each) { return each.number == number; });
    assert_true(found != family.tables.end());
    return *found;
}

void assert_key(const std::string &key, const char *expected)
{
    assert_string_equal(key.substr(0, key.size() - 8).c_str(), expected);
}

/* --- the order --- */

void sequence_numbers_tell_not_files(void **)
{
    found_family family = ordered({keys(20, "a", "z", 1, 3), keys(10, "k", "l", 5, 7)});
    assert_false(family.is_interleaved);
    assert_true(table_of(family, 10).level < table_of(family, 20).level);
}

void tables_without_overlap_lie_side_by_side(void **)
{
    found_family family = ordered({keys(10, "a", "c", 1, 3), keys(11, "d", "f", 2, 7)});
    assert_false(family.is_interleaved);
    assert_int_equal(table_of(family, 10).level, STORE_LEVELS - 1);
    assert_int_equal(table_of(family, 11).level, STORE_LEVELS - 1);
}

void interleaved_tables_are_found(void **)
{
    std::vector<found_table> tables = {keys(10, "a", "k", 3, 4), keys(11, "k", "z", 0, 7)};
    found_family served = ordered(tables), accepted = ordered(tables, true);
    assert_true(served.is_interleaved);
    assert_false(served.wants_compaction);
    assert_true(accepted.wants_compaction);
}

/* More than there are levels: the newest are at level 0, as RocksDB wants them there. */
void level_0_has_the_rest_in_order(void **)
{
    std::vector<found_table> tables;
    for (uint64_t i = 0; i < STORE_LEVELS + 3; i++)
        tables.push_back(keys(10 + i, "a", "z", i, i + 1)); /* each begins where the last ended */
    found_family family = ordered(tables);
    uint64_t before = 0;
    size_t at_0 = 0;
    for (const found_table &each : family.tables) {
        if (each.level > 0)
            continue;
        assert_true(each.least == each.greatest && each.least > before);
        before = each.least;
        at_0++;
    }
    assert_int_equal(at_0, 4);
}

/* --- deleted ranges --- */

void a_deletion_above_what_is_newer_wants_a_compaction(void **)
{
    found_table newest = deleting(keys(11, "k", "z", 9, 9), "k", "l", 5);
    assert_true(ordered({keys(10, "k", "k", 7, 8), newest}).wants_compaction);
    assert_false(ordered({keys(10, "k", "k", 3, 4), newest}).wants_compaction);
    assert_false(ordered({keys(10, "m", "m", 7, 8), newest}).wants_compaction);
}

void a_deletion_below_what_is_older_wants_a_compaction(void **)
{
    found_table older = deleting(keys(10, "k", "m", 6, 6), "k", "l", 5);
    assert_true(ordered({older, keys(11, "k", "z", 3, 9)}).wants_compaction);
    assert_false(ordered({older, keys(11, "k", "z", 7, 9)}).wants_compaction);
}

void a_deletion_goes_on_behind_the_keys(void **)
{
    found_table newest = deleting(keys(12, "k", "l", 9, 9), "b", "x", 8);
    found_family family = ordered({keys(10, "c", "d", 1, 2), keys(11, "p", "q", 3, 4), newest});
    assert_key(table_of(family, 12).smallest, "b");
    assert_key(table_of(family, 12).largest, "x");
    assert_true(table_of(family, 12).level < table_of(family, 10).level);
    assert_true(table_of(family, 12).level < table_of(family, 11).level);
}

/* They may have been written after it, and lost their sequence numbers since. */
void a_deletion_ends_where_a_younger_table_is(void **)
{
    found_table newest = deleting(keys(10, "k", "l", 9, 9), "b", "x", 8);
    found_family family = ordered({keys(11, "c", "d", 0, 0), keys(12, "p", "q", 0, 0), newest});
    assert_true(table_of(family, 10).smallest > "d");
    assert_key(table_of(family, 10).largest, "p");
    assert_false(family.is_interleaved);
}

/* Both are of one compaction, which gave each all of the range. */
void a_deletion_ends_where_another_table_has_it(void **)
{
    found_table first = deleting(keys(10, "c", "d", 0, 2), "b", "x", 8);
    found_table second = deleting(keys(11, "p", "q", 0, 2), "b", "x", 8);
    found_family family = ordered({first, second});
    assert_key(table_of(family, 10).largest, "p");
    assert_true(table_of(family, 11).smallest > "d");
    assert_key(table_of(family, 11).largest, "x");
}

/* --- what does not count --- */

std::vector<uint64_t> left_out(std::vector<found_table> tables, uint64_t unfinished)
{
    found_family family;
    std::vector<uint64_t> numbers;
    size_t count = tables.size();
    family.tables = std::move(tables);
    leave_out_replaced(&family, unfinished, &numbers);
    assert_int_equal(family.tables.size() + numbers.size(), count);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

using numbers = std::vector<uint64_t>;

void a_replaced_table_does_not_count(void **)
{
    assert_true(left_out({keys(10, "a", "z", 0, 0), keys(12, "a", "y", 0, 3)}, 0) == numbers{10});
    assert_true(left_out({keys(10, "a", "z", 0, 0), keys(12, "a", "z", 0, 3)}, 15) == numbers{10});
    assert_true(left_out({keys(10, "a", "z", 0, 0), keys(12, "a", "m", 0, 3)}, 11) == numbers{10});
}

void an_unfinished_table_does_not_count(void **)
{
    std::vector<found_table> tables = {keys(10, "a", "z", 0, 0), keys(12, "a", "f", 0, 3),
                                       keys(13, "g", "m", 0, 3)};
    assert_true(left_out(tables, 14) == (numbers{12, 13}));
}

/* The table in the middle has replaced the first, and a kill cut short what replaced it. */
void each_is_judged_by_what_counts(void **)
{
    std::vector<found_table> tables = {keys(10, "a", "z", 0, 0), keys(12, "a", "z", 0, 3),
                                       keys(15, "a", "m", 0, 3)};
    assert_true(left_out(tables, 16) == (numbers{10, 15}));
}

void what_has_sequence_numbers_or_other_keys_counts(void **)
{
    assert_true(left_out({keys(10, "a", "z", 1, 5), keys(12, "a", "z", 0, 9)}, 0).empty());
    assert_true(left_out({keys(10, "a", "z", 0, 5), keys(12, "a", "z", 1, 9)}, 0).empty());
    assert_true(left_out({keys(10, "a", "m", 0, 0), keys(12, "n", "z", 0, 0)}, 0).empty());
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(sequence_numbers_tell_not_files),
        cmocka_unit_test(tables_without_overlap_lie_side_by_side),
        cmocka_unit_test(interleaved_tables_are_found),
        cmocka_unit_test(level_0_has_the_rest_in_order),
        cmocka_unit_test(a_deletion_above_what_is_newer_wants_a_compaction),
        cmocka_unit_test(a_deletion_below_what_is_older_wants_a_compaction),
        cmocka_unit_test(a_deletion_goes_on_behind_the_keys),
        cmocka_unit_test(a_deletion_ends_where_a_younger_table_is),
        cmocka_unit_test(a_deletion_ends_where_another_table_has_it),
        cmocka_unit_test(a_replaced_table_does_not_count),
        cmocka_unit_test(an_unfinished_table_does_not_count),
        cmocka_unit_test(each_is_judged_by_what_counts),
        cmocka_unit_test(what_has_sequence_numbers_or_other_keys_counts),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
