/* What reads go through in vain: for keyspace_waste. */
#ifndef TRESTLE_STORE_WASTE_H
#define TRESTLE_STORE_WASTE_H

#include <cstdint>

/* An entry's part of it beside its bytes: about as many go through a compaction in the time in
 * which an iterator steps over an entry. */
enum : uint64_t { ENTRY_WASTE = 64 };

/* Entries that iterators of the present thread have passed over since the last call, because newer
 * ones had replaced them. An iterator tells it when it ends. */
uint64_t take_entries_passed();

#endif
