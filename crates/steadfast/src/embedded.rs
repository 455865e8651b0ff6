//! The simulated cluster as the runner sees it: its time and its network.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use runner::clock::Clock;
use runner::external::dial::{Dialer, Stream};
use sim::world::World;

/// Tells the simulated cluster's time, virtual under a paused runtime.
pub struct SimClock(pub World);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.0.cluster.with(|core| core.now())
    }
}

/// Connects to the models of the simulated cluster.
pub struct SimDialer(pub World);

impl Dialer for SimDialer {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            self.0.connect(host, port).await.map(|stream| Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// A runner's environment in the simulated cluster.
pub fn environment(
    world: &World,
    client: kube::Client,
    random: Arc<dyn runner::random::Random>,
) -> runner::Environment {
    runner::Environment {
        client,
        clock: Arc::new(SimClock(world.clone())),
        random,
        dialer: Arc::new(SimDialer(world.clone())),
    }
}
