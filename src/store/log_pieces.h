/* What write-ahead logs and manifests are made of (log_scan.cc says how): for code that reads them,
 * or writes one. */
#ifndef TRESTLE_STORE_LOG_PIECES_H
#define TRESTLE_STORE_LOG_PIECES_H

#include <cstddef>
#include <cstdint>
#include <string>

enum : size_t { BLOCK = 32 << 10, HEADER = 7 };
enum piece_type : uint8_t { FULL = 1, FIRST = 2, MIDDLE = 3, LAST = 4 };

/* The checksum in a piece's header, of its type and its payload, which lie side by side. */
uint32_t piece_sum(const char *type_and_payload, size_t size);

/* Writes records, one after the other, into `text`. The caller that removes bytes from its
 * beginning adds how many to `taken`. */
class record_writer {
  public:
    void add(const std::string &record);

    std::string text;
    uint64_t taken = 0;

  private:
    size_t left_in_block() const { return BLOCK - (taken + text.size()) % BLOCK; }
    void add_piece(piece_type type, const char *payload, size_t size);
};

#endif
