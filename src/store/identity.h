/* The file IDENTITY, which says which store it is: RocksDB takes what is there, whatever it is, and
 * makes one where there is none. directory.cc. */
#ifndef TRESTLE_STORE_IDENTITY_H
#define TRESTLE_STORE_IDENTITY_H

#include "store/internal.h"

/* Whether it has the form of one, 8-4-4-4-12 hexadecimal digits, without a line's end. */
bool is_identity(const std::string &text);

/* Before RocksDB opens the directory for writing: what is there and is none gets the name
 * IDENTITY.damaged, and RocksDB makes one. */
rocksdb::Status forget_damaged_identity(rocksdb::FileSystem *files, const std::string &directory);

#endif
