/* See fault_memory.h. */
#include "store/testing/fault_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

static thread_local unsigned countdown;

void fault_memory_fail(unsigned n)
{
    countdown = n;
}

static void *allocate(size_t size)
{
    if (countdown > 0 && --countdown == 0)
        return nullptr;
    return malloc(size > 0 ? size : 1);
}

void *operator new(size_t size)
{
    void *memory = allocate(size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}

void *operator new(size_t size, const std::nothrow_t &) noexcept
{
    return allocate(size);
}

void *operator new[](size_t size)
{
    return operator new(size);
}

void *operator new[](size_t size, const std::nothrow_t &) noexcept
{
    return allocate(size);
}

void operator delete(void *memory) noexcept
{
    free(memory);
}

void operator delete(void *memory, size_t) noexcept
{
    free(memory);
}

void operator delete[](void *memory) noexcept
{
    free(memory);
}

void operator delete[](void *memory, size_t) noexcept
{
    free(memory);
}
