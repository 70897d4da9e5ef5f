/* Looks through a log, block by block: log_scan.cc. */
#ifndef TRESTLE_STORE_LOG_SCANNER_H
#define TRESTLE_STORE_LOG_SCANNER_H

#include "store/log_ends.h"
#include "store/log_pieces.h"

class log_scanner {
  public:
    /* Both stay. `found` has number and bounds. */
    log_scanner(log_scan *found_, const log_visitor &visit_) : found(found_), visit(visit_) {}

    /* Blocks in their order; all but the last are whole. */
    void scan(const rocksdb::Slice &block);
    void finish();

  private:
    struct piece {
        piece_type type;
        rocksdb::Slice payload;
    };

    static bool read_piece(const rocksdb::Slice &block, size_t offset, piece *out);
    size_t step_over(const rocksdb::Slice &block, size_t offset) const;
    bool may_come_next(const rocksdb::Slice &block, size_t offset) const;
    void note_damage(uint64_t offset);
    void note_piece(const piece &here, uint64_t offset);
    void gather(bool begins, const rocksdb::Slice &payload);
    bool note_sequence();
    void note_commit(const rocksdb::Slice &last_payload, uint64_t end);
    void note_commit_behind(uint64_t end);
    void take(uint64_t end);
    void close_gap(uint64_t to, uint64_t changes);

    log_scan *const found;
    const log_visitor &visit;
    std::string record; /* so far; its head, if there is no visitor */
    uint64_t begun = 0; /* where its first piece is */
    uint64_t first = 0; /* its sequence number, and how many it has */
    uint64_t count = 0;
    uint64_t next = 0;         /* the number after the last commit that was whole */
    uint64_t taken_end = 0;    /* and where that ended */
    bool in_gap = false;       /* something has been broken since */
    bool in_record = false;    /* pieces of a record whose FIRST was whole */
    bool synced_since = false; /* since the damage: a whole record of a synced batch */
    bool rest_is_broken = false;
};

#endif
