"""
A host that knows llama.cpp by ctypes alone, as llama-cpp-python does: libraries opened privately (RTLD_LOCAL), functions found
by dlsym, structures passed by value. Decodes greedily; prints JSON lines as run.c does.

python3 ctypes-host.py LIB MODEL BYTES_OF_LLAMA_MODEL_PARAMS BYTES_OF_LLAMA_CONTEXT_PARAMS THREADS DECODE
"""

import ctypes as c
import json
import os
import sys
import threading
import time

folder, model_path = sys.argv[1:3]
model_bytes, context_bytes, threads, decode = map(int, sys.argv[3:])


class ModelParams(c.Structure):
    _fields_ = [("bytes", c.c_char * model_bytes)]


class ContextParams(c.Structure):
    _fields_ = [("bytes", c.c_char * context_bytes)]


class Batch(c.Structure):
    _fields_ = [("n_tokens", c.c_int32), ("pointers", c.c_void_p * 6)]


def function(library, name, result, *arguments):
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found


ggml = c.CDLL(f"{folder}/libggml.so")
llama = c.CDLL(f"{folder}/libllama.so")
quiet = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(lambda level, text, data: None)
function(llama, "llama_log_set", None, c.c_void_p, c.c_void_p)(quiet, None)
function(ggml, "ggml_backend_load_all_from_path", None, c.c_char_p)(folder.encode())

model = function(llama, "llama_model_load_from_file", c.c_void_p, c.c_char_p, ModelParams)(
    model_path.encode(), function(llama, "llama_model_default_params", ModelParams)()
)
context = function(llama, "llama_init_from_model", c.c_void_p, c.c_void_p, ContextParams)(
    model, function(llama, "llama_context_default_params", ContextParams)()
)
function(llama, "llama_set_n_threads", None, c.c_void_p, c.c_int32, c.c_int32)(context, threads, threads)
vocabulary = function(llama, "llama_model_get_vocab", c.c_void_p, c.c_void_p)(model)
words = function(llama, "llama_vocab_n_tokens", c.c_int32, c.c_void_p)(vocabulary)
batch_of = function(llama, "llama_batch_get_one", Batch, c.c_void_p, c.c_int32)
run = function(llama, "llama_decode", c.c_int32, c.c_void_p, Batch)
logits_of = function(llama, "llama_get_logits_ith", c.POINTER(c.c_float), c.c_void_p, c.c_int32)

tokens, chosen = [1, 261, 262, 263], []
for call in range(1 + decode):
    array = (c.c_int32 * len(tokens))(*tokens)
    start = time.monotonic_ns()
    if run(context, batch_of(array, len(tokens))) != 0:
        sys.exit("llama_decode failed")
    kind = "decode" if call else "prompt"
    times = {"start": start, "end": time.monotonic_ns(), "tid": threading.get_native_id()}
    print(json.dumps({"event": "call", "context": 0, "call": call, "kind": kind, "tokens": len(tokens), **times}))
    logits = logits_of(context, -1)[:words]
    tokens = [logits.index(max(logits))]
    chosen += tokens
function(llama, "llama_free", None, c.c_void_p)(context)
print(json.dumps({"event": "result", "pid": os.getpid(), "tokens": [[chosen]]}))
