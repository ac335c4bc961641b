/* libcuda.so.1: the 11 functions that ggml-cuda calls, which map device memory. */
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

#include "bed.h"

#define API extern "C" __attribute__((visibility("default"))) int

API cuDeviceGet(int * device, int ordinal) {
    *device = ordinal;
    return 0;
}
API cuDeviceGetAttribute(int * value, int attribute, int) {
    *value = attribute == 102; /* CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    return 0;
}
API cuGetErrorString(int, const char ** text) {
    *text = "an error of the test bed";
    return 0;
}
API cuMemGetAllocationGranularity(size_t * bytes, const void *, int) {
    *bytes = 2 << 20;
    return 0;
}
API cuMemAddressReserve(uint64_t * address, size_t size, size_t, uint64_t, unsigned long long) {
    void * memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *address = (uint64_t) memory;
    return memory == MAP_FAILED ? 2 : 0; /* CUDA_ERROR_OUT_OF_MEMORY */
}
API cuMemAddressFree(uint64_t address, size_t size) { return munmap((void *) address, size) ? 1 : 0; }
API cuMemCreate(uint64_t * handle, size_t size, const void *, unsigned long long) {
    *handle = size;
    return 0;
}
API cuMemMap(uint64_t, size_t, size_t, uint64_t, unsigned long long) { return 0; }
API cuMemSetAccess(uint64_t address, size_t size, const void *, size_t) {
    return mprotect((void *) address, size, PROT_READ | PROT_WRITE) ? 2 : 0;
}
API cuMemUnmap(uint64_t address, size_t size) { return mprotect((void *) address, size, PROT_NONE) ? 1 : 0; }
API cuMemRelease(uint64_t) { return 0; }
