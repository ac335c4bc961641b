// Decodes greedily with ggml and llama.cpp inside, in goroutines with a context each; prints a hash of all tokens and logits.
//
//	host MODEL GOROUTINES CALLS
package main

/*
#include <stdlib.h>
#include "llama.h"
static void be_quiet(enum ggml_log_level level, const char * text, void * data) { (void) level, (void) text, (void) data; }
static void set_quiet(void) { llama_log_set(be_quiet, NULL); }
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"unsafe"
)

func decode(model *C.struct_llama_model, words, calls int, seed C.llama_token) uint64 {
	parameters := C.llama_context_default_params()
	parameters.n_ctx = 256
	parameters.n_threads, parameters.n_threads_batch = 2, 2
	context := C.llama_init_from_model(model, parameters)
	defer C.llama_free(context)
	hash := fnv.New64a()
	token := (*C.llama_token)(C.malloc(C.size_t(unsafe.Sizeof(C.llama_token(0)))))
	defer C.free(unsafe.Pointer(token))
	*token = seed
	for i := 0; i < calls; i++ {
		if i%250 == 249 {
			C.llama_memory_clear(C.llama_get_memory(context), true)
		}
		if result := C.llama_decode(context, C.llama_batch_get_one(token, 1)); result != 0 {
			panic(fmt.Sprintf("llama_decode: %d", result))
		}
		logits := unsafe.Slice((*float32)(unsafe.Pointer(C.llama_get_logits_ith(context, -1))), words)
		best := 0
		for at, value := range logits {
			if value > logits[best] {
				best = at
			}
			_ = binary.Write(hash, binary.LittleEndian, math.Float32bits(value))
		}
		*token = C.llama_token(best)
		if i%64 == 0 {
			runtime.GC()
		}
	}
	return hash.Sum64()
}

func main() {
	goroutines, _ := strconv.Atoi(os.Args[2])
	calls, _ := strconv.Atoi(os.Args[3])
	C.set_quiet()
	C.llama_backend_init()
	path := C.CString(os.Args[1])
	model := C.llama_model_load_from_file(path, C.llama_model_default_params())
	words := int(C.llama_vocab_n_tokens(C.llama_model_get_vocab(model)))
	hashes := make([]uint64, goroutines)
	var all sync.WaitGroup
	for i := range hashes {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			hashes[i] = decode(model, words, calls, C.llama_token(i+3))
		}(i)
	}
	all.Wait()
	C.llama_model_free(model)
	fmt.Println(hashes)
}
