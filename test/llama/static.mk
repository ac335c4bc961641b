# Builds programs and add-ons of Node.js that contain ggml and llama.cpp, from llama.cpp's sources in S, as upstream's -DBUILD_SHARED_LIBS=OFF
# makes them: nothing is exported, and calls are bound when they are linked. One set of objects serves for both. Of the models there is only the one that tests have: what others need is left
# unresolved. LEVEL is that of the sources with functions that the recorder hooks; the others take minutes with more than -O1.
CC = gcc
CXX = g++
LEVEL = -O2
PIE ?= -fPIC -fvisibility=hidden
LINK ?= -no-pie
FLAGS = -w -g0 -pthread $(PIE) -DNDEBUG -D_GNU_SOURCE -D_XOPEN_SOURCE=600 -DGGML_USE_CPU -DGGML_SCHED_MAX_COPIES=4 \
  -I. $(addprefix -I$S/,include ggml/include ggml/src ggml/src/ggml-cpu src)

ggml = ggml.c ggml-alloc.c ggml-backend.cpp ggml-backend-meta.cpp ggml-threading.cpp ggml-quants.c gguf.cpp ggml.cpp ggml-backend-reg.cpp \
  ggml-backend-dl.cpp ggml-opt.cpp
cpu = $(addsuffix .c,ggml-cpu quants arch/x86/quants) $(addsuffix .cpp,ggml-cpu repack iqp hbm traits binary-ops unary-ops vec ops amx/amx \
  amx/mmq arch/x86/repack)
llama = llama-context.cpp llama-batch.cpp llama-kv-cache-dsv4.cpp
# Most of the time of a source is that of its headers: these, which compute nothing, are compiled as one.
together = $(filter-out $(addprefix $S/src/,$(llama) llama-quant.cpp llama-model-saver.cpp),$(wildcard $S/src/*.cpp)) $S/src/models/llama.cpp
objects = $(patsubst %,o/%.o,$(addprefix ggml/src/,$(ggml) $(addprefix ggml-cpu/,$(cpu))) $(addprefix src/,$(llama))) o/together.o
hooked = $(addprefix o/,$(addsuffix .o,ggml/src/ggml-backend.cpp ggml/src/ggml-cpu/ggml-cpu.c ggml/src/ggml-cpu/ggml-cpu.cpp \
  ggml/src/ggml-cpu/traits.cpp src/llama-context.cpp src/llama-batch.cpp))
openmp = $(patsubst %ggml-cpu.c.o,%ggml-cpu.openmp.o,$(objects))
programs = hosts alone hosts-openmp hosts.node hosts-openmp.node
versions = ggml-version.h llama-version.h

# The longest first.
all: o/together.o $(programs)
$(hooked) $(filter %openmp.o,$(openmp)): OPTIMISED = $(LEVEL)
OPTIMISED = -O1

$(versions):
	echo '#define GGML_VERSION "test"' > ggml-version.h
	echo '#define GGML_COMMIT "test"' >> ggml-version.h
	echo '#define LLAMA_VERSION "test"' > llama-version.h
	echo '#define LLAMA_COMMIT "test"' >> llama-version.h

o/together.o: $(together) | $(versions)
	@mkdir -p $(@D)
	printf '#include "%s"\n' $^ > o/together.cpp
	$(CXX) -std=c++17 -O0 $(FLAGS) -c o/together.cpp -o $@
o/%.c.o: $S/%.c | $(versions)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPTIMISED) $(FLAGS) -c $< -o $@
o/%.openmp.o: $S/%.c | $(versions)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPTIMISED) $(FLAGS) -fopenmp -DGGML_USE_OPENMP -c $< -o $@
o/%.cpp.o: $S/%.cpp | $(versions)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(OPTIMISED) $(FLAGS) -c $< -o $@
o/%.o: $T/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 $(FLAGS) -c $< -o $@

hosts-openmp: o/hosts.o $(openmp)
	$(CXX) $(LINK) -pthread -fopenmp $^ -Wl,--unresolved-symbols=ignore-all -ldl -o $@
hosts alone: %: o/%.o $(objects)
	$(CXX) $(LINK) -pthread $^ -Wl,--unresolved-symbols=ignore-all -ldl -o $@

# An add-on whose data is undefined cannot be loaded: places for what other models would have.
o/addon.o: $T/addon.c
o/program.o: $T/hosts.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 $(FLAGS) -Dmain=program_main -c $< -o $@
o/missing.s: $(objects)
	nm -u -P $^ | awk '$$2 ~ /[Uw]/ {print $$1}' | sort -u > o/undefined
	nm --defined-only -P $^ | awk 'NF > 2 {print $$1}' | sort -u > o/defined
	comm -23 o/undefined o/defined | awk 'BEGIN {print ".data"} /llama|llm_/ {print ".globl " $$1 "\n.hidden " $$1 "\n" $$1 ": .skip 256"}' > $@
hosts.node: o/addon.o o/program.o $(objects) o/missing.s
	$(CXX) -shared -pthread $^ -ldl -o $@
hosts-openmp.node: o/addon.o o/program.o $(openmp) o/missing.s
	$(CXX) -shared -pthread -fopenmp $^ -ldl -o $@
