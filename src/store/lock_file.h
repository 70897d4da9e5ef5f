/* The file LOCK of a directory that is locked, should somebody remove it: lock_file.cc. */
#ifndef TRESTLE_STORE_LOCK_FILE_H
#define TRESTLE_STORE_LOCK_FILE_H

#include <cstdint>
#include <mutex>
#include <string>

extern "C" {
#include "base/status.h"
}

enum lock_state { LOCK_OURS, LOCK_GONE, LOCK_TAKEN /* by another process */ };

class lock_file {
  public:
    ~lock_file();
    void begin(const std::string &directory); /* once, when it has just been locked */
    /* A few system calls. What is changed at the moment, and what was never begun, is ours. */
    lock_state look();
    /* One of that name that is locked, if there is none: FAILED_PRECONDITION if another process
     * has it. */
    status take();

  private:
    std::mutex mutex; /* of the rest */
    std::string path;
    uint64_t inode = 0;
    int fd = -1; /* of one that was made anew */
};

#endif
