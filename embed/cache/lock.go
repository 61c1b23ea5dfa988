package cache

// lockMode says how lockFile takes the lock.
type lockMode int

const (
	shared       lockMode = iota // wait for the holder of an exclusive lock
	exclusive                    // wait for every holder
	tryExclusive                 // fail where somebody holds the lock
)
