import { type Provocations, textInput } from './provoked.ts'

/** As provoked.ts, for codes of ggtrace, ProfInfer and recordings of the kernel. */
export const PROVOKED_BY_KERNEL: Provocations = {
  'old-thread-states': () =>
    textInput(
      '          <idle>-0     [000] d..2.     1.000000: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=4096 ==> next_comm=b next_pid=6 next_prio=120\n',
    ),
  'nothing-traced': () => textInput('Attaching 4 probes...\ng2p clock boot\ng2p fact script token\n'),
}
