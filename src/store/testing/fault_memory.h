/* For tests: C++ allocations that fail, in the store and in RocksDB. A program that links this
 * library has its operator new. */
#ifndef TRESTLE_STORE_TESTING_FAULT_MEMORY_H
#define TRESTLE_STORE_TESTING_FAULT_MEMORY_H

#ifdef __cplusplus
extern "C" {
#endif

/* The n-th allocation of this thread from now on fails, once; 0: none does. */
void fault_memory_fail(unsigned n);

#ifdef __cplusplus
}
#endif

#endif
