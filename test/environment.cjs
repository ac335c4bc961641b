const vm = require('node:vm')
const { TestEnvironment } = require('jest-environment-node')

/**
 * Jest's environment for Node, whose global object is an ordinary one. By default each look at a global (`Math`, `Number`) goes
 * through interceptors of node:vm and a Proxy, which makes hot loops up to fifty times slower than they are in Node.
 */
class PlainEnvironment extends TestEnvironment {
  constructor(...args) {
    const { createContext } = vm
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY)
    try {
      super(...args)
    } finally {
      vm.createContext = createContext
    }
  }
}

module.exports = PlainEnvironment
